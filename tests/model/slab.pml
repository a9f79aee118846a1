/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * slab.pml - one page that lives as a slab of class 1 or 2, or as a run, and
 * goes back to the run map in between.
 *
 * Class 1 has four objects in two words of two bits, class 2 two objects in
 * one word.  Word 0 looks the same full in both, which is what makes a late
 * compare-and-swap dangerous.  Ghosts say where every object is: in a word,
 * in transit (taken, not handed out) or held by the program.
 *
 * One step is one access to shared memory.  README.md lists the mutants.
 */
#ifndef NP
#define NP	2
#endif
#ifndef REFILLS
#define REFILLS	1
#endif
#ifndef LAST
#define LAST	REFILLS
#endif
#define NONE	0
#define RUN	3
#define WORDS(c) ((c) == 1 -> 2 : 1)
#define FULL(c)	((c) == 1 -> 15 : 3)

bool pagefree;			/* the page's bit in the run map */
byte tag;
byte W[2];			/* free bits */
bool idx[3];			/* index of class: a hint */

byte held[NP], trans[NP];	/* ghosts, bit 2 * word + object */
byte owes[NP];			/* 1: the index bit, 2: a look at retirement */
byte page;			/* worker + 1 who has the page in hand */
bool dead[NP], ended[NP];
#ifdef COUNTER
byte given;
#endif
hidden byte hi;

#define LIVE	!dead[me]

inline alone(mask)		/* nobody else has these objects */
{
	d_step {
		for (hi : 0 .. NP - 1) {
			assert(((held[hi] | trans[hi]) & (mask)) == 0)
		};
		assert(((W[0] | (W[1] << 2)) & (mask)) == 0); hi = 0
	}
}

inline nobody()			/* the page is no slab, and has no bits */
{
	alone(15);
	assert(tag == NONE && W[0] == 0 && W[1] == 0 && page == 0)
}

inline settle(debt)		/* what the dead owed is done by this step */
{
	d_step {
		for (hi : 0 .. NP - 1) {
			if
			:: dead[hi] -> owes[hi] = owes[hi] & ~(debt)
			:: else
			fi
		};
		hi = 0
	}
}

proctype worker(byte me, n)
{
	byte c, t, k, pk, m, got, old;
	bool back;		/* the put returns objects of a wrong class */
#if defined(EARLYIDX)
	bool seen;
#endif

next:
	atomic { LIVE;
		c = 0; t = 0; k = 0; pk = 0; m = 0; got = 0; old = 0;
		back = 0; owes[me] = 0;
		if
		:: held[me] & 3 -> pk = 0; m = held[me] & 3
		:: held[me] >> 2 -> pk = 1; m = held[me] >> 2
		:: n == 0 -> ended[me] = 1; goto out	/* may keep some */
		:: held[me] == 0 && n > 0 -> n--;
			if
			:: c = 1; goto REFILL
			:: c = 2; goto REFILL
#ifdef RUNS
			:: c = RUN; goto BIRTH
#endif
			fi
		fi;
		if :: skip :: m == 3 -> m = 1 :: m == 3 -> m = 2 fi }

	/* eddy_slab_put */
PUT:
	atomic { LIVE; t = tag; assert(t == 1 || t == 2) }	/* pinned */
#ifdef EARLYIDX
	atomic { LIVE; seen = idx[t] }
#endif
#ifdef PLAINOR
	atomic { LIVE; old = W[pk] }
#endif
	atomic { LIVE;
#ifndef PLAINOR
		old = W[pk];
#endif
		assert((old & m) == 0);		/* nobody is accused falsely */
		W[pk] = old | m;
		held[me] = held[me] & ~(m << (2 * pk));
		trans[me] = trans[me] & ~(m << (2 * pk));
#ifdef COUNTER
		given = given - (m == 3 -> 2 : 1);
#endif
		settle(3); owes[me] = 3 }
#if defined(BACKNOHINT)
	if
	:: atomic { LIVE && !back -> idx[t] = 1; owes[me] = 2 }
	:: atomic { LIVE && back -> owes[me] = 2 }
	fi;
#elif defined(EARLYIDX)
	atomic { LIVE; if :: !seen -> idx[t] = 1 :: else fi;
		seen = 0; owes[me] = 2 }
#elif defined(FIRSTONLY)
	atomic { LIVE; if :: old == 0 -> idx[t] = 1 :: else fi; owes[me] = 2 }
#else
	atomic { LIVE; idx[t] = 1; owes[me] = 2 }
#endif
#ifdef BACKNOLOOK
	if
	:: atomic { LIVE && back -> goto PUTDONE }
	:: atomic { LIVE && !back }
	fi;
#endif
#ifdef COUNTER
	atomic { LIVE;
		if
		:: given == 0 && tag == t -> W[0] = 0; W[1] = 0;
			page = me + 1; goto GONE
		:: else -> goto PUTDONE
		fi }
#endif
	atomic { LIVE;			/* all free? */
		if
		:: (old | m) != 3 -> goto PUTDONE
		:: (old | m) == 3 && WORDS(t) == 1 -> goto RETIRE
		:: (old | m) == 3 && WORDS(t) == 2 ->
			if :: W[1 - pk] != 3 -> goto PUTDONE :: else fi
		fi }

	/* eddy_slab_retire */
RETIRE:
#ifdef RETIRESTORE
	atomic { LIVE; W[0] = 0; trans[me] = trans[me] | 3 }
#else
	atomic { LIVE;
		if
		:: W[0] == 3 -> W[0] = 0; trans[me] = 3
		:: else -> goto PUTDONE
		fi }
#endif
#ifndef RETIREBLIND
	atomic { LIVE;			/* what was taken? */
		if
		:: tag == t -> skip
		:: tag != t -> pk = 0; m = 3; back = 1; goto PUT
		fi }
#endif
	if
	:: atomic { LIVE && WORDS(t) == 1 }
	:: atomic { LIVE && WORDS(t) == 2 ->
		if
		:: W[1] == 3 -> W[1] = 0; trans[me] = 15
		:: else -> pk = 0; m = 3; back = 1;
#ifdef ROLLBARE
			W[0] = 3; trans[me] = 0; goto PUTDONE
#else
			goto PUT
#endif
		fi }
	fi;
GONE:
#ifdef PAGEFIRST
	atomic { LIVE; trans[me] = 0; page = 0; owes[me] = 0; pagefree = 1 }
	atomic { LIVE; tag = NONE }
#else
#ifndef IDXLATE
	atomic { LIVE; idx[t] = 0; owes[me] = 0 }
#endif
	atomic { LIVE; tag = NONE; trans[me] = 0; page = me + 1 }
	atomic { LIVE; page = 0; owes[me] = 0; nobody(); pagefree = 1 }
#ifdef IDXLATE
	atomic { LIVE; idx[t] = 0 }
#endif
#endif
PUTDONE:
	atomic { LIVE; owes[me] = 0; pk = 0; m = 0; old = 0; t = 0;
		if
		:: back && c != 0 -> back = 0; goto CLEAR
		:: else -> back = 0; goto next
		fi }

	/* eddy_slab_refill */
REFILL:
	atomic { LIVE; if :: idx[c] -> k = 0 :: else -> goto BIRTH fi }
#ifdef CHECKFIRST
	atomic { LIVE; if :: tag == c -> skip :: else -> goto CLEAR fi }
#endif
TAKE:
	atomic { LIVE; got = W[k]; W[k] = 0;
		trans[me] = got << (2 * k);
		if
		:: got -> skip
		:: got == 0 && k + 1 < WORDS(c) -> k++; goto TAKE
		:: got == 0 && k + 1 >= WORDS(c) -> goto CLEAR
		fi }
	atomic { LIVE;			/* take, then read what was taken */
#if defined(NOVALIDATE) || defined(CHECKFIRST)
		if
		:: true ->
#else
		if
		:: tag == c ->
#endif
			assert(tag == c);
			held[me] = got << (2 * k); trans[me] = 0;
#ifdef COUNTER
			given = given + (got == 3 -> 2 : 1);
#endif
			got = 0
#if !defined(NOVALIDATE) && !defined(CHECKFIRST)
		:: else -> pk = k; m = got; back = 1; got = 0; goto PUT
#endif
		fi }
	atomic { LIVE; if :: W[0] -> goto next :: else fi }
	if
	:: atomic { LIVE && WORDS(c) == 2 ->
		if :: W[1] -> goto next :: else fi }
	:: atomic { LIVE && WORDS(c) == 1 }
	fi;
CLEAR:
#ifdef STALETAG
	atomic { LIVE; t = tag }
#endif
	atomic { LIVE; idx[c] = 0; owes[me] = 1 }
#ifndef NORELOOK
	atomic { LIVE; if :: W[0] -> goto WHOSE :: else fi }
	atomic { LIVE; if :: W[1] -> skip :: else -> goto CLEARED fi }
WHOSE:
#ifdef STALETAG
	atomic { LIVE; if :: t == c -> skip :: else -> goto CLEARED fi }
#else
	atomic { LIVE; if :: tag == c -> skip :: else -> goto CLEARED fi }
#endif
	atomic { LIVE; idx[c] = 1 }
#endif
CLEARED:
	atomic { LIVE; owes[me] = 0; t = 0;
		if :: held[me] -> goto next :: else fi }

	/* eddy_slab_birth */
BIRTH:
	atomic { LIVE;
		if
		:: pagefree -> nobody(); pagefree = 0; page = me + 1
		:: else -> goto next
		fi }
	if
	:: atomic { LIVE && c == RUN -> tag = RUN };
	   atomic { LIVE; old = tag; tag = NONE; assert(old == RUN) };
	   atomic { LIVE; page = 0; nobody(); pagefree = 1; goto next }
	:: atomic { LIVE && c != RUN }
	fi;
#ifdef TAGLATE
	if
	:: atomic { LIVE && WORDS(c) == 2 -> W[1] = 3; owes[me] = 1 }
	:: atomic { LIVE && WORDS(c) == 1 }
	fi;
	atomic { LIVE; tag = c; page = 0; held[me] = 3;
#else
	atomic { LIVE; alone(15); tag = c; page = 0; held[me] = 3;
#endif
#ifdef COUNTER
		given = 2;
#endif
#ifndef TAGLATE
		trans[me] = FULL(c) & ~3;
#endif
		if :: WORDS(c) == 1 -> goto next :: else fi }
#ifndef TAGLATE
	atomic { LIVE; assert(W[1] == 0); W[1] = 3; trans[me] = 0;
		settle(1); owes[me] = 1 }
#endif
	atomic { LIVE; idx[c] = 1; goto next }
out:
	skip
}

#ifdef KILL
proctype killer()
{
	byte k = KILL, v;
	do
	:: k > 0 -> atomic {
		select (v : 0 .. NP - 1);
		if :: !ended[v] -> dead[v] = 1 :: else fi;
		k--; v = 0 }
	:: break
	od;
	k = 0
}
#endif

init {
	byte i, j, x, all, debt; bool death;

	atomic {
		tag = 1;		/* a living slab of class 1 */
#if NP == 2
		held[0] = 3; held[1] = 12;
#else
		held[0] = 1; held[1] = 2; held[2] = 12;
#endif
#ifdef COUNTER
		given = 4;
#endif
		for (i : 0 .. NP - 1) {
			if
			:: i == NP - 1 -> run worker(i, LAST)
			:: else -> run worker(i, REFILLS)
			fi
		};
		i = 0;
#ifdef KILL
		run killer()
#endif
	}
	atomic {
		if
		:: (ended[0] || dead[0]) && (ended[1] || dead[1]) &&
		   (ended[NP - 1] || dead[NP - 1]) -> skip
		:: timeout -> assert(false)
		fi;
		all = W[0] | (W[1] << 2);
		for (i : 0 .. NP - 1) {
			if :: dead[i] -> debt = debt | owes[i]; death = 1
			:: else fi;
			assert((all & held[i]) == 0);
			all = all | held[i];
			assert((all & trans[i]) == 0);
			all = all | trans[i];
			assert(trans[i] == 0 || dead[i])
		};
		if
		:: pagefree -> nobody()
		:: !pagefree && page -> assert(dead[page - 1])
		:: else ->
			assert(tag == 1 || tag == 2);
			assert(all == FULL(tag));	/* none lost */
			x = W[0] | (W[1] << 2);
			/* what is free is found, what is all free retires */
			assert(x == 0 || idx[tag] || (debt & 1));
			assert(x != FULL(tag) || (debt & 2))
		fi
	}
}
