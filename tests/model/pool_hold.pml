/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pool_hold.pml - a pool ends while somebody who empties idle caches has objects
 * of it in his hand.
 *
 * Lookers hold the pool, take an object out of its caches, put it into its slab
 * and release the pool; one that was left meanwhile they end.  The owner ends
 * the pool, or leaves that to who holds it, and makes another one of the same
 * struct if it is free.  The first pool may come from a parent where somebody
 * held it, who is not here.
 *
 * At the end no memory is left but that of a pool whose holder is dead (-DKILL,
 * at any step).  README.md lists the mutants.
 */
#ifndef NL
#define NL	2		/* lookers */
#endif
#ifndef LOOKS
#define LOOKS	2		/* of each */
#endif
#ifndef LIVES
#define LIVES	2		/* pools, one after another */
#endif
#define ENDED	0
#define LIVE	1
#define HELD	2
#define LEFT	3
#define PARENT	4		/* held in a parent */
#define ALIVE	!dead[me]

byte life;
bool spare;			/* the struct is nobody's */
bool cached;			/* an object in a cache */

/* ghosts */
byte there = 1;			/* which pool has memory, 0: none */
byte holds;			/* who has it in his hand: number + 1 */
bool dead[NL + 1], over[NL + 1];

inline finish(who)
{
	atomic { ALIVE; assert(there && (holds == 0 || holds == who));
		there = 0; cached = 0; holds = 0 }
	atomic { ALIVE; assert(!spare); spare = 1 }
}

proctype looker(byte me)
{
	byte n = LOOKS, hand, seen;

next:
	atomic { ALIVE; hand = 0; seen = 0;
		if
		:: n == 0 -> over[me] = 1; goto out
		:: n > 0 -> n--
		fi }
	atomic { ALIVE; seen = life;
		if
		:: seen == LIVE || seen == PARENT
		:: else -> goto next
		fi }
#ifdef HOLDSTORE
	atomic { ALIVE; life = HELD; holds = me + 1 }
#else
	atomic { ALIVE;
		if
		:: life == seen -> life = HELD;
			assert(!holds); holds = me + 1
		:: else -> goto next
		fi }
#endif
	atomic { ALIVE; assert(there);
		if :: cached -> cached = 0; hand = there :: else fi }
	atomic { ALIVE; assert(!hand || hand == there) }
#ifdef RELEASESTORE
	atomic { ALIVE; life = LIVE; holds = 0; goto next }
#endif
	atomic { ALIVE;
		if
		:: life == HELD -> life = LIVE; holds = 0; goto next
		:: else -> seen = life
		fi }
#ifdef NOFINISH
	atomic { ALIVE; holds = 0; goto next }
#endif
	atomic { ALIVE; if :: seen == LEFT :: else -> goto next fi }
#ifdef ENDLATE
	finish(me + 1);
	atomic { ALIVE; life = ENDED }
#else
	atomic { ALIVE; life = ENDED }
	finish(me + 1);
#endif
	goto next;
out:
	skip
}

proctype owner(byte me)
{
	byte pool = 1, seen, after;

end:
	atomic { ALIVE; seen = life }
again:
#if defined(ENDBLIND)
	after = ENDED;
#elif defined(ANYHOLDER)
	after = (seen == HELD || seen == PARENT -> LEFT : ENDED);
#else
	after = (seen == HELD -> LEFT : ENDED);
#endif
#ifdef ENDSTORE
	atomic { ALIVE; life = after }
#else
	atomic { ALIVE;
		if
		:: life == seen -> life = after
		:: else -> seen = life; goto again
		fi }
#endif
	if
	:: after == ENDED -> finish(0)
	:: else
	fi;
	/* another struct is no matter here */
	atomic { ALIVE;
		if
		:: pool < LIVES && spare -> spare = 0; pool++
		:: else -> goto out
		fi }
	atomic { ALIVE; assert(!there); there = pool; cached = 1 }
	atomic { ALIVE; life = LIVE; goto end }
out:
	over[me] = 1
}

#ifdef KILL
proctype killer()
{
	byte v;

	select (v : 0 .. NL - 1);
	atomic { if :: !over[v] -> dead[v] = 1 :: else fi; v = 0 }
}
#endif

init {
	byte i;

	atomic {
		if :: life = LIVE :: life = PARENT fi;
		cached = 1;
		for (i : 0 .. NL - 1) { run looker(i) }
		run owner(NL);
#ifdef KILL
		run killer()
#endif
	}
end_init:
	atomic {
		over[NL] && (over[0] || dead[0]) &&
		(over[NL - 1] || dead[NL - 1]) ->
		assert(!there || (holds && dead[holds - 1]))
	}
}
