/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * chunk.pml - chunks in a segment: birth, claims, retirement, tail donation.
 *
 * Two chunks, each of two pages that lie in two words.  A chunk in an arena
 * has an owner, free bits, and hints in two buckets (runs of one page, of
 * two) of the arena.  A huge block is chunk 0 whole and the first page of
 * chunk 1, which is born as an ordinary chunk with its second page free.
 *
 * Segment bits S: a set bit may be taken by whoever clears it, as below.
 * One step is one access to shared memory.  README.md lists the mutants.
 */
#ifndef NP
#define NP	2
#endif
#ifndef OPS
#define OPS	1
#endif
#ifndef LAST
#define LAST	OPS
#endif
#define LIVE	!dead[me]
#define HUGE	9
#ifndef START0			/* a huge block; or 1: its tail's prefix only */
#define START0	HUGE
#endif
#ifndef START1
#define START1	1
#endif

bool S[2];			/* free chunks of the segment */
byte owner[2];			/* arena 1 or 2, 0 in none */
bool F[4];			/* free pages: chunk * 2 + page */
bool H[12];			/* hints: arena * 4 + chunk * 2 + bucket */

/* ghosts */
byte page[4];			/* worker + 1 who has it in hand */
byte whole[2];			/* worker + 1 who has the chunk in hand */
byte owes[NP];			/* chunk's bit: hints; chunk's bit * 4: retirement */
bool dead[NP], ended[NP];
hidden byte hi;

#define HINT(a, c, b)	H[(a) * 4 + (c) * 2 + (b)]
#define OWE(c)	(1 << (c))
#define OWERETIRE(c) (4 << (c))
#define NOPAGES(c) (!F[(c) * 2] && !F[(c) * 2 + 1] && \
	!page[(c) * 2] && !page[(c) * 2 + 1])

inline settle(bits)
{
	d_step {
		for (hi : 0 .. NP - 1) {
			if
			:: dead[hi] -> owes[hi] = owes[hi] & ~(bits)
			:: else
			fi
		};
		hi = 0
	}
}

proctype worker(byte me, n)
{
	byte a;			/* arena that this operation is for */
	byte c, p;		/* chunk, first page in hand */
	byte have;		/* pages in hand: 1, 2, HUGE */
	byte want, v, t, b;
	bool again, fresh;

	if
	:: atomic { LIVE && me == 0 -> have = START0; c = (have == 1) }
	:: atomic { LIVE && me == 1 -> have = START1; c = 1; p = 1 }
	:: atomic { LIVE && me > 1 }
	fi;
next:
	atomic { LIVE; v = 0; t = 0; b = 0; again = 0; fresh = 0; want = 0;
		owes[me] = 0;
		if
		:: have == 1 || have == 2 -> goto PUT
		:: have == HUGE -> goto FREEHUGE
		:: have == 0 && n > 0 -> n--; c = 0; p = 0;
			if :: a = 1 :: a = 2 fi;
			if
			:: want = 1; goto SEARCH
			:: want = 2; goto SEARCH
			:: want = HUGE; goto CLAIMHUGE
			fi
		:: n == 0 -> have = 0; c = 0; p = 0; a = 0; want = 0;
			ended[me] = 1; goto out	/* may keep what it has */
		fi }

	/* eddy_pages_put: `have` pages from p on of chunk c */
PUT:
#ifdef ROLLOLD			/* to whom it belonged before the take */
	atomic { LIVE;
		if
		:: again && want -> t = a
		:: again && !want -> skip
		:: !again -> t = owner[c]
		fi }
#else
	atomic { LIVE; t = owner[c]; assert(t) }	/* pinned */
#endif
	if
	:: atomic { LIVE && have == 2 -> assert(!F[c * 2]);
		page[c * 2] = 0; F[c * 2] = 1; p = 1;
		settle(OWE(c)); owes[me] = OWE(c) }
	:: atomic { LIVE && have == 1 }
	fi;
	atomic { LIVE; assert(!F[c * 2 + p]);
		page[c * 2 + p] = 0; F[c * 2 + p] = 1; have = 0;
		settle(OWE(c) | OWERETIRE(c));
		owes[me] = OWE(c) | OWERETIRE(c) }
	atomic { LIVE; v = F[c * 2] }
	atomic { LIVE; v = v + F[c * 2 + 1];
		if :: v == 0 -> goto PUTDONE :: else fi }
#ifdef NOHINTBACK
	if
	:: atomic { LIVE && !again -> HINT(t, c, v - 1) = 1 }
	:: atomic { LIVE && again }
	fi;
#else
	atomic { LIVE; HINT(t, c, v - 1) = 1 }
#endif
	atomic { LIVE; owes[me] = owes[me] & ~OWE(c);
		if :: v == 2 -> skip :: else -> goto PUTDONE fi }

	/* eddy_runset_retire: a claim of all pages */
#ifdef BELIEVE			/* what was seen, without taking it */
	atomic { LIVE; F[c * 2] = 0; F[c * 2 + 1] = 0;
		page[c * 2] = me + 1; page[c * 2 + 1] = me + 1; goto CLOSE }
#endif
	atomic { LIVE;
		if
		:: F[c * 2] -> F[c * 2] = 0; page[c * 2] = me + 1
		:: else -> goto PUTDONE
		fi }
	atomic { LIVE;
		if
		:: F[c * 2 + 1] -> F[c * 2 + 1] = 0; page[c * 2 + 1] = me + 1
		:: else -> p = 0; have = 1; again = 1; goto PUT
		fi }
	atomic { LIVE;			/* is it still the arena's? */
		if
		:: owner[c] == t -> skip
		:: else -> p = 0; have = 2; again = 1; goto PUT
		fi }
#ifdef BELIEVE
CLOSE:
#endif
#ifdef PUTFIRST
	atomic { LIVE; page[c * 2] = 0; page[c * 2 + 1] = 0; owes[me] = 0;
		S[c] = 1 }
	atomic { LIVE; owner[c] = 0 }
#else
#ifndef HINTSLATE
	atomic { LIVE; HINT(t, c, 0) = 0; HINT(t, c, 1) = 0 }
#endif
	atomic { LIVE; owner[c] = 0; whole[c] = me + 1;
		page[c * 2] = 0; page[c * 2 + 1] = 0; owes[me] = 0 }
	atomic { LIVE; assert(!S[c] && NOPAGES(c) && !owner[c]);
		whole[c] = 0; S[c] = 1 }
#ifdef HINTSLATE
	atomic { LIVE; HINT(t, c, 0) = 0; HINT(t, c, 1) = 0 }
#endif
#endif
PUTDONE:
	atomic { LIVE; owes[me] = 0; v = 0; have = 0; t = 0; p = 0;
		if
		:: again && want -> again = 0; goto DOUBT
		:: else -> again = 0; goto next
		fi }

	/* eddy_large_free of a huge block: prefix by put, then the chunk */
FREEHUGE:
	atomic { LIVE; assert(whole[0] == me + 1 && page[2] == me + 1);
		c = 1; p = 0; have = 1; t = owner[1];
		assert(t && !owner[0] && NOPAGES(0)) }
#ifdef TAILWHOLE		/* the tail goes back as a chunk, too */
	atomic { LIVE; page[2] = 0; owner[1] = 0; S[1] = 1; have = 0 }
	atomic { LIVE; whole[0] = 0; S[0] = 1; c = 0; goto next }
#endif
	atomic { LIVE; whole[0] = 0; assert(!S[0]); S[0] = 1; goto next }

	/* eddy_runset_claim */
SEARCH:
	atomic { LIVE; b = want - 1 }
BUCKET:
	atomic { LIVE;
		if
		:: HINT(a, 0, b) -> c = 0
		:: HINT(a, 1, b) -> c = 1
		:: !HINT(a, 0, b) && !HINT(a, 1, b) && b == 0 ->
			b = 1; goto BUCKET
		:: !HINT(a, 0, b) && !HINT(a, 1, b) && b == 1 -> goto GROW
		fi }
#ifdef OWNERFIRST
	atomic { LIVE; if :: owner[c] == a -> skip :: else -> goto DOUBT fi }
#endif
	atomic { LIVE; p = 0;
		if
		:: F[c * 2] -> F[c * 2] = 0; page[c * 2] = me + 1; have = 1
		:: !F[c * 2] && want == 1 && F[c * 2 + 1] -> p = 1;
			F[c * 2 + 1] = 0; page[c * 2 + 1] = me + 1; have = 1
		:: else -> goto DOUBT
		fi }
	if
	:: atomic { LIVE && want == 2 ->
		if
		:: F[c * 2 + 1] -> F[c * 2 + 1] = 0;
			page[c * 2 + 1] = me + 1; have = 2
		:: else -> again = 1; goto PUT
		fi }
	:: atomic { LIVE && want == 1 }
	fi;
#ifdef OWNERFIRST
	atomic { LIVE; assert(owner[c] == a); goto next }
#else
	atomic { LIVE;			/* in hand: now it is true */
		if
		:: owner[c] == a -> goto next
		:: else -> again = 1; goto PUT
		fi }
#endif

	/* nothing here for us: once, then grow */
DOUBT:
#ifdef STALEOWNER
	atomic { LIVE; t = owner[c] }
#endif
	atomic { LIVE; HINT(a, c, b) = 0; owes[me] = OWE(c); have = 0 }
#ifndef NORELOOK
	atomic { LIVE; v = F[c * 2] }
	atomic { LIVE; v = v + F[c * 2 + 1];
		if :: v == 0 -> goto GROW :: else fi }
#ifdef STALEOWNER
	atomic { LIVE; if :: t == a -> skip :: else -> goto GROW fi }
#else
	atomic { LIVE; if :: owner[c] == a -> skip :: else -> goto GROW fi }
#endif
	atomic { LIVE; HINT(a, c, v - 1) = 1 }
#endif

	/* eddy_chunk_open of a chunk from the segment */
GROW:
	atomic { LIVE; owes[me] = 0; v = 0; t = 0; p = 0;
		if
		:: S[0] -> c = 0 :: S[1] -> c = 1
		:: !S[0] && !S[1] -> goto next	/* no memory */
		fi;
		assert(!owner[c] && NOPAGES(c) && !whole[c]);
		S[c] = 0; whole[c] = me + 1 }
OPENED:
#ifdef OWNERLATE
	atomic { LIVE; whole[c] = 0; page[c * 2] = me + 1; have = 1;
		F[c * 2 + 1] = 1; owes[me] = OWE(c) }
	atomic { LIVE; owner[c] = a }
#else
	atomic { LIVE; owner[c] = a;
		whole[c] = (want == HUGE -> whole[c] : 0);
		if
		:: want == HUGE -> whole[1] = 0
		:: else
		fi;
		page[c * 2] = me + 1; page[c * 2 + 1] = me + 1;
		if
		:: want == 2 -> have = 2; goto next
		:: want == 1 -> have = 1
		:: want == HUGE -> have = HUGE
		fi }
	atomic { LIVE; assert(!F[c * 2 + 1]); page[c * 2 + 1] = 0;
		F[c * 2 + 1] = 1; settle(OWE(c)); owes[me] = OWE(c) }
#endif
	atomic { LIVE; HINT(a, c, 0) = 1; owes[me] = 0; goto next }

	/* a huge block: chunks 0 and 1 of the segment, in ascending order */
CLAIMHUGE:
	atomic { LIVE;
		if
		:: S[0] -> S[0] = 0; whole[0] = me + 1;
			assert(!owner[0] && NOPAGES(0))
		:: else -> goto next
		fi }
	atomic { LIVE;
		if
		:: S[1] -> S[1] = 0; whole[1] = me + 1;
			assert(!owner[1] && NOPAGES(1)); c = 1; goto OPENED
		:: else -> skip
		fi }
	atomic { LIVE; whole[0] = 0; S[0] = 1; goto next }
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
	byte i, debt, f;

	atomic {		/* chunk 1 of arena 1, both pages out */
		owner[1] = 1; page[2] = 1; page[3] = 2;
		if
		:: START0 == HUGE -> whole[0] = 1
		:: else -> S[0] = 1
		fi;
		for (i : 0 .. NP - 1) {
			if
			:: i == NP - 1 -> run worker(i, LAST)
			:: else -> run worker(i, OPS)
			fi
		};
		i = 0;
#ifdef KILL
		run killer()
#endif
	}
	atomic {
		if
		:: (ended[0] || dead[0]) && (ended[NP - 1] || dead[NP - 1]) &&
		   (ended[1] || dead[1]) -> skip
		:: timeout -> assert(false)
		fi;
		for (i : 0 .. NP - 1) {
			if :: dead[i] -> debt = debt | owes[i] :: else fi
		};
		for (i : 0 .. 1) {
			f = F[i * 2] + F[i * 2 + 1];
			if
			:: owner[i] == 0 ->	/* in the segment, or in hand */
				assert(S[i] + (whole[i] != 0) == 1);
				assert(NOPAGES(i))
			:: else ->
				assert(!S[i] && !whole[i]);
				/* each page is in one place */
				assert(F[i * 2] + (page[i * 2] != 0) == 1);
				assert(F[i * 2 + 1] +
				    (page[i * 2 + 1] != 0) == 1);
				/* what is free is found */
				assert(f == 0 || (debt & OWE(i)) ||
				    HINT(owner[i], i, 1) ||
				    (f == 1 && HINT(owner[i], i, 0)));
				/* what is all free has retired */
				assert(f != 2 || (debt & OWERETIRE(i)))
			fi
		}
	}
}
