/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pool.pml - a page that is a pool's slab of two objects, or a slab of the same
 * class elsewhere, and goes from one to the other by shrinks of the pool.
 *
 * Two mutators take objects, publish them, remove and free them; a reader holds
 * what he has read across frees, within a section that the grace waits for;
 * shrinkers withdraw, wait, give back; another arena uses the page meanwhile
 * and retires its slab, maybe late.  `life` is a ghost: which life as the
 * pool's slab the page is in, 0 if in none.
 *
 * One step is one access to shared memory.  README.md lists the mutants.
 */
#ifndef OPS
#define OPS	1
#endif
#ifndef READS
#define READS	1
#endif
#ifndef NS
#define NS	2		/* shrinkers */
#endif
#ifndef OTHERS
#define OTHERS	1
#endif
#define NM	2
#define NONE	0
#define POOL	1
#define OTHER	2
#define LIMBO	4		/* + number: 5, 6 */
#define FULL	3

bool pagefree;
byte tag = POOL;
byte W = FULL;			/* free bits */
byte top;			/* the structure: an object's bit, or 0 */

byte life = 1, lives = 1;	/* ghosts */
byte held[NM];
bool inside;			/* the reader is in a section */
byte exits;			/* sections that he has left */
bool dead[8], over[8];

#define LIVE	!dead[me]

inline release()		/* the page is nobody's: back to the run map */
{
	assert(!pagefree && W == 0);
	life = 0; pagefree = 1
}

/* ---- who uses the pool ---- */

proctype mutator(byte me)
{
	byte n = OPS + (me == 0), m, old;

next:
	atomic { LIVE; m = 0; old = 0;
		if
		:: n == 0 -> over[me] = 1; goto out
		:: n > 0 -> n--
		fi }
	if
	:: atomic { LIVE && held[me] && top == 0 ->
		top = held[me]; held[me] = 0; goto next }
	:: atomic { LIVE && top != 0 -> m = top; top = 0 }	/* removed */
	:: atomic { LIVE && held[me] -> m = held[me]; held[me] = 0 }
	:: atomic { LIVE && !held[me] -> goto TAKE }
	fi;
FREE:
	atomic { LIVE; assert(tag == POOL);	/* pinned */
		old = W; assert((old & m) == 0); W = old | m }
#ifdef LIVERETIRE
	atomic { LIVE; if :: (old | m) == FULL && W == FULL -> W = 0
			  :: else -> goto next fi }
	atomic { LIVE; tag = NONE; release(); goto next }
#endif
	atomic { LIVE; goto next }
TAKE:
	atomic { LIVE;
		if
		:: W & 1 -> m = 1; W = W & 2
		:: W & 2 -> m = 2; W = W & 1
		:: W == 0 && pagefree -> pagefree = 0; goto BIRTH
		:: W == 0 && !pagefree -> goto next
		fi }
	atomic { LIVE;
		if
		:: tag == POOL -> held[me] = m
		:: else -> W = W | m		/* of others: put back */
		fi;
		goto next }
BIRTH:	/* constructed, tagged, then the bits */
	atomic { LIVE; assert(tag == NONE); lives++; life = lives; tag = POOL }
	atomic { LIVE; assert(W == 0); W = 2; held[me] = 1; goto next }
out:
	skip
}

proctype reader(byte me)
{
	byte n = READS, p, l;

	do
	:: atomic { LIVE && n > 0 -> n--; inside = 1 }
	   atomic { LIVE; p = top; l = life }
	   atomic { LIVE; assert(p == 0 || life == l) }
	   atomic { LIVE; inside = 0; exits++; p = 0; l = 0 }
	:: atomic { LIVE && n == 0 -> over[me] = 1; break }
	od
}

/* ---- shrinks ---- */

inline wait_readers()
{
	atomic { LIVE; before = exits; waits = inside }
end_grace:
	atomic { LIVE && (!waits || exits != before) }
}

proctype shrinker(byte me, k)
{
	byte before, seen; bool waits, mine;

#ifdef GRACEFIRST
	wait_readers();
#endif
WITHDRAW:
	atomic { LIVE; seen = tag }
	if
	:: atomic { LIVE && seen > LIMBO && seen != LIMBO + k }
#ifndef ADOPTLATE
#ifdef ADOPTSTORE
	   atomic { LIVE; tag = LIMBO + k; mine = 1; goto TAKEN }
#else
	   atomic { LIVE; if :: tag == seen -> tag = LIMBO + k; mine = 1
			     :: else fi; goto TAKEN }
#endif
#else
	   goto TAKEN
#endif
	:: atomic { LIVE && seen == POOL }
	:: atomic { LIVE && (seen == NONE || seen == OTHER) -> goto TAKEN }
	fi;
	atomic { LIVE; if :: W == FULL -> W = 0 :: else -> goto TAKEN fi }
	atomic { LIVE;
		if
		:: tag == POOL -> mine = 1
		:: else -> W = FULL; goto TAKEN		/* put back */
		fi
		}
	atomic { LIVE; assert(tag == POOL); tag = LIMBO + k }	/* pinned */
TAKEN:
#if !defined(NOGRACE) && !defined(GRACEFIRST)
	wait_readers();
#endif
#ifdef ADOPTLATE
	atomic { LIVE; if :: tag > LIMBO -> tag = LIMBO + k :: else fi }
#endif
GIVE:
#if defined(GIVEALL)
	atomic { LIVE; if :: tag > LIMBO -> tag = NONE; mine = 1
			  :: else -> mine = 0; goto DONE fi }
#elif defined(GIVESTORE)
	atomic { LIVE; if :: tag == LIMBO + k :: else -> goto DONE fi }
	atomic { LIVE; tag = NONE }
#else
	atomic { LIVE; if :: tag == LIMBO + k -> tag = NONE
			  :: else -> goto DONE fi }
#endif
	atomic { LIVE; release() }
DONE:
	atomic { LIVE; over[me] = 1 }
}

/* ---- another arena's slab of the same class, all of it free ---- */

proctype other(byte me)
{
	byte n = OTHERS;

	do
	:: atomic { LIVE && n > 0 && pagefree -> n--; pagefree = 0 }
	   atomic { LIVE; assert(tag == NONE && life == 0); tag = OTHER }
	   atomic { LIVE; W = FULL }
	   /* he may come late: the slab of his is another's by then */
	   if
	   :: true
	   :: atomic { LIVE && tag == OTHER && W == FULL -> W = 0 }
	      atomic { LIVE; tag = NONE }
	      atomic { LIVE; release() }
	   fi;
	   atomic { LIVE; if :: W == FULL -> W = 0 :: else -> goto again fi }
#ifndef RETIREPOOL
	   atomic { LIVE; if :: tag == OTHER -> tag = NONE
			     :: else -> W = FULL; goto again fi }
#else
	   atomic { LIVE; tag = NONE }
#endif
	   atomic { LIVE; release() }
again:	   skip
	:: atomic { LIVE -> over[me] = 1; break }
	od
}

#ifdef KILL
proctype killer()
{
	byte v;

	select (v : 0 .. 6);
	atomic { if :: !over[v] -> dead[v] = 1 :: else fi; v = 0 }
}
#endif

init {
	atomic {
		/* one object is in the structure */
		W = 2; top = 1;
		run mutator(0); run mutator(1); run reader(2);
		run shrinker(3, 1);
#if NS > 1
		run shrinker(4, 2);
#else
		over[4] = 1;
#endif
		run other(5); over[6] = 1;
#ifdef KILL
		run killer()
#endif
	}
end_init:
	atomic {
		(over[0] || dead[0]) && (over[1] || dead[1]) &&
		(over[2] || dead[2]) && (over[3] || dead[3]) &&
		(over[4] || dead[4]) && (over[5] || dead[5]) ->
		/* in limbo is only what the dead have left there */
		assert(tag < LIMBO || dead[3] || dead[4]);
		assert(W != FULL || tag == POOL || tag == OTHER)
	}
}
