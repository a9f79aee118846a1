/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * chunk.pml - chunks in a segment: birth, claims, retirement, huge blocks.
 *
 * Two chunks, each of two pages that lie in two words.  A chunk in an arena
 * has an owner, free bits, and hints in two buckets (runs of one page, of
 * two) of the arena.  A huge block is one chunk or both, whole, claimed and
 * put in ascending order; it grows and shrinks by chunk 1.
 *
 * Segment bits S: a set bit may be taken by whoever clears it, as below.
 * -DSPARE: an arena keeps the last chunk that became empty and retires the
 * one before it.  -DDIRTY: what calloc believes of pages and chunks.
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
#define HUGE	8		/* and the number of chunks */
#ifndef START0			/* chunk 0 as a huge block; 2: both chunks, */
#define START0	1		/* 0: a page of chunk 1 */
#endif

bool S[2];			/* free chunks of the segment */
byte owner[2];			/* arena 1 or 2, 0 in none */
bool F[4];			/* free pages: chunk * 2 + page */
bool H[12];			/* hints: arena * 4 + chunk * 2 + bucket */
#ifdef SPARE
byte spare[3];			/* of an arena: chunk + 1 */
#endif
#ifdef DIRTY
bool PD[4], SD[2], U[2];	/* dirty pages, dirty chunks, uniform */
bool data[4];			/* ghost: there is something else than 0 */
#endif

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

#ifdef DIRTY
/* eddy_pages_use, a write or not, eddy_pages_clean or not */
inline use_page(i)
{
	assert(!data[i] || PD[i]);	/* calloc would not clear it */
	if
	:: data[i] = 1; PD[i] = 1
	:: data[i] = 0; PD[i] = 0
	fi
}

/* eddy_chunks_use, the same */
inline use_chunk(i)
{
	assert(!data[(i) * 2] || (SD[i] && (U[i] || PD[(i) * 2])));
	assert(!data[(i) * 2 + 1] || (SD[i] && (U[i] || PD[(i) * 2 + 1])));
#ifndef NOUNIFORM
	U[i] = 1;
#endif
	if
	:: SD[i] = 1; data[(i) * 2] = 1; data[(i) * 2 + 1] = 1
	:: SD[i] = 0; data[(i) * 2] = 0; data[(i) * 2 + 1] = 0
	fi
}
#else
#define use_page(i)	skip
#define use_chunk(i)	skip
#endif

proctype worker(byte me, n)
{
	byte a;			/* arena that this operation is for */
	byte c, p;		/* chunk, first page in hand */
	byte have;		/* in hand: 1 or 2 pages, or HUGE + 1, + 2 */
	byte want, v, t, b;
	byte q;			/* chunk that is looked at by a search */
	bool again;

	if
	:: atomic { LIVE && me == 0 && START0 > 0 -> have = HUGE + START0 }
	:: atomic { LIVE && me == 0 && START0 == 0 -> have = 1; c = 1 }
	:: atomic { LIVE && me == 1 && START0 < 2 -> have = 1; c = 1; p = 1 }
	:: atomic { LIVE && (me > 1 || (me == 1 && START0 == 2)) }
	fi;
next:
	atomic { LIVE; v = 0; t = 0; b = 0; q = 0; again = 0; want = 0;
		owes[me] = 0;
		/* it has what it thinks it has, and nothing else */
		assert((whole[0] == me + 1) == (have > HUGE && c == 0));
		assert((whole[1] == me + 1) ==
		    (have == HUGE + 2 || (have > HUGE && c == 1)));
		if
		:: have == 1 || have == 2 -> goto PUT
		:: have > HUGE -> goto FREEHUGE
		:: have == HUGE + 1 && c == 0 && n > 0 -> n--; goto LONGER
		:: have == HUGE + 2 && n > 0 -> n--; goto SHORTER
		:: have == 0 && n > 0 -> n--; c = 0; p = 0;
			if :: a = 1 :: a = 2 fi;
			if
			:: want = 1; goto SEARCH
			:: want = 2; goto SEARCH
			:: a == 1 -> a = 0; goto CLAIMONE
			:: a == 1 -> a = 0; goto CLAIMTWO
#ifdef SPARE
			:: goto GIVESPARE
#endif
			fi
		:: n == 0 -> have = 0; c = 0; p = 0; a = 0;
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
#ifdef SPARE
	atomic { LIVE; v = spare[t]; spare[t] = c + 1; owes[me] = 0;
		if
		:: v == 0 || v == c + 1 -> goto PUTDONE
		:: else -> c = v - 1; owes[me] = OWERETIRE(c)
		fi }
#endif
RETIRE:
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
#if defined(DIRTY) && !defined(NODIRTYUP)
	atomic { LIVE; SD[c] = PD[c * 2] || PD[c * 2 + 1] }
#endif
	atomic { LIVE; assert(!S[c] && NOPAGES(c) && !owner[c]);
		whole[c] = 0; S[c] = 1 }
#ifdef HINTSLATE
	atomic { LIVE; HINT(t, c, 0) = 0; HINT(t, c, 1) = 0 }
#endif
#endif
PUTDONE:
	atomic { LIVE; owes[me] = 0; v = 0; have = 0; t = 0; p = 0;
		again = 0; c = q;
		if :: want -> goto DOUBT :: else -> goto next fi }

#ifdef SPARE			/* eddy_chunk_retire_spare, at any time */
GIVESPARE:
	atomic { LIVE; t = a; v = spare[t]; spare[t] = 0;
		if
		:: v == 0 -> goto next
		:: else -> c = v - 1; owes[me] = OWERETIRE(c); goto RETIRE
		fi }
#endif

	/* huge_release: chunk by chunk */
FREEHUGE:
	atomic { LIVE; assert(whole[c] == me + 1 && !S[c]);
		assert(!owner[c] && NOPAGES(c));
		whole[c] = 0; S[c] = 1;
		if
		:: have == HUGE + 2 -> have = HUGE + 1; c = 1; goto FREEHUGE
		:: else -> have = 0; c = 0; goto next
		fi }

	/* huge_resize: chunk 1 goes, or comes */
SHORTER:
	atomic { LIVE; assert(!S[1] && !owner[1] && NOPAGES(1));
		whole[1] = 0; S[1] = 1; have = HUGE + 1; goto next }
LONGER:
#ifdef GROWBLIND		/* what was seen, without taking it */
	atomic { LIVE; if :: S[1] -> skip :: else -> goto next fi }
	atomic { LIVE; S[1] = 0;
#else
	atomic { LIVE;
		if :: S[1] -> S[1] = 0 :: else -> goto next fi;
#endif
		assert(!owner[1] && NOPAGES(1) && !whole[1]);
		whole[1] = me + 1; have = HUGE + 2; use_chunk(1);
		goto next }

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
		fi;
		q = c }
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
	atomic { LIVE; assert(owner[c] == a); goto USE }
#else
	atomic { LIVE;			/* in hand: now it is true */
		if
		:: owner[c] == a -> goto USE
		:: else -> again = 1; goto PUT
		fi }
#endif

USE:
	atomic { LIVE; use_page(c * 2 + p);
		if :: have == 2 -> use_page(c * 2 + 1) :: else fi;
		goto next }

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
#ifdef OWNERLATE
	atomic { LIVE; whole[c] = 0; page[c * 2] = me + 1; have = 1;
		F[c * 2 + 1] = 1; owes[me] = OWE(c) }
	atomic { LIVE; owner[c] = a }
#else
	atomic { LIVE; owner[c] = a; whole[c] = 0;
		page[c * 2] = me + 1; page[c * 2 + 1] = me + 1;
#ifdef DIRTY
		if
		:: U[c] -> U[c] = 0;
#ifndef KEEPBITS
			PD[c * 2] = SD[c]; PD[c * 2 + 1] = SD[c]
#endif
		:: else
		fi;
#endif
		have = want;
		if :: want == 2 -> goto USE :: else fi }
	atomic { LIVE; assert(!F[c * 2 + 1]); page[c * 2 + 1] = 0;
		F[c * 2 + 1] = 1; settle(OWE(c)); owes[me] = OWE(c) }
#endif
	atomic { LIVE; HINT(a, c, 0) = 1; owes[me] = 0; goto USE }

	/* a huge block: whole chunks of the segment, in ascending order */
CLAIMONE:
	atomic { LIVE;
		if
		:: S[0] -> c = 0 :: S[1] -> c = 1
		:: !S[0] && !S[1] -> goto next
		fi;
		assert(!owner[c] && NOPAGES(c) && !whole[c]);
		S[c] = 0; whole[c] = me + 1; have = HUGE + 1; use_chunk(c);
		goto next }
CLAIMTWO:
	atomic { LIVE;
		if
		:: S[0] -> S[0] = 0; whole[0] = me + 1;
			assert(!owner[0] && NOPAGES(0))
		:: else -> goto next
		fi }
	atomic { LIVE;
		if
		:: S[1] -> S[1] = 0; whole[1] = me + 1; have = HUGE + 2;
			assert(!owner[1] && NOPAGES(1));
			use_chunk(0); use_chunk(1); goto next
		:: else -> skip
		fi }
#ifndef KEEPHALF
	atomic { LIVE; whole[0] = 0; S[0] = 1 }
#endif
	goto next;
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

	atomic {
		if
		:: START0 == 2 -> whole[0] = 1; whole[1] = 1
		:: START0 == 1 -> whole[0] = 1; owner[1] = 1; page[3] = 2;
			F[2] = 1; HINT(1, 1, 0) = 1
		:: START0 == 0 -> S[0] = 1; owner[1] = 1; page[2] = 1;
			page[3] = 2
		fi;
#ifdef DIRTY			/* huge blocks are, pages not yet */
		for (i : 0 .. 3) {
			data[i] = (whole[i / 2] > 0)
		};
		for (i : 0 .. 1) {
			SD[i] = (whole[i] > 0); U[i] = (whole[i] > 0)
		};
#endif
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
				assert(f != 2 || (debt & OWERETIRE(i))
#ifdef SPARE
				    || spare[owner[i]] == i + 1
#endif
				    )
			fi
		}
	}
}
