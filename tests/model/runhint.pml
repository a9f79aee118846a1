/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * runhint.pml - free runs of a chunk and the hints that lead to them.
 *
 * NB pages in two words of BITS free bits.  A hint says "there may be a run
 * of 2^b .. 2^(b+1)-1 pages here"; it has two levels, leaf H[b] and top T[b].
 * Whoever puts pages ORs their bits, reads the words, takes the longest run
 * that touches what he put, and sets that bucket, testing every level.  A
 * searcher for n pages looks into the buckets of n and above; where he finds
 * nothing he clears the bucket, looks again, and sets the bucket of the
 * longest run there is now.
 *
 * One step is one access to shared memory.  README.md lists the mutants.
 */
#ifndef BITS
#define BITS	2
#endif
#define NB	(2 * BITS)
#define LOW	((1 << BITS) - 1)
#define ALL	((1 << NB) - 1)
#define NBUCKET	3
#define BUCKET(l) ((l) >= 4 -> 2 : ((l) >= 2 -> 1 : 0))
#ifndef NP
#define NP	2
#endif
#ifndef CLAIMS
#define CLAIMS	1
#endif
#ifndef FIRST
#define FIRST	CLAIMS		/* claims of the first worker */
#endif
#ifndef LAST
#define LAST	CLAIMS		/* and of the last */
#endif
#ifndef START0			/* pages that each worker holds at first */
#define START0	3
#define START1	12
#endif
#ifndef START2
#define START2	0
#endif

byte W[2];			/* free bits */
bool H[NBUCKET], T[NBUCKET];
byte owes[NP];			/* pages whose hint this worker must yet set */
byte held[NP];
bool dead[NP], ended[NP];

hidden byte hi, hx, hs, ht;

#define LIVE	!dead[me]
#define FREEBITS (W[0] | (W[1] << BITS))

/* longest run of v; with m != 0, of the runs that touch m.  s: its pages */
inline longest(v, m, l, s)
{
	d_step {
		l = 0; s = 0; hx = 0; hs = 0; hi = 0;
		do
		:: hi <= NB ->
			if
			:: hi < NB && ((v >> hi) & 1) ->
				hx++; hs = hs | (1 << hi)
			:: else ->
				if
				:: (m) == 0 || (hs & (m)) ->
					if :: hx > l -> l = hx :: else fi;
					s = s | hs
				:: else
				fi;
				hx = 0; hs = 0
			fi;
			hi++
		:: else -> break
		od;
		hi = 0; hx = 0; hs = 0
	}
}

/* the pages of mask are this worker's business from now on */
inline take_over(mask)
{
	d_step {
		for (hi : 0 .. NP - 1) { owes[hi] = owes[hi] & ~(mask) };
		owes[me] = owes[me] | (mask); hi = 0
	}
}

/* likewise for the pages seen free; what a dead worker owed for a longer run
 * than was seen here stays owed: only he had seen all of it */
inline take_over_seen(mask)
{
	d_step {
		hx = FREEBITS & ~(mask);
		for (hi : 1 .. NB) {
			hx = hx | (((hx << 1) | (hx >> 1)) & FREEBITS)
		};
		hs = (mask) & ~hx;
		for (hi : 0 .. NP - 1) { owes[hi] = owes[hi] & ~hs };
		owes[me] = owes[me] | (mask); hi = 0; hx = 0; hs = 0
	}
}

proctype worker(byte me, n)
{
	byte m, want, v, b, b2, l, seen, got;
	bool again;

next:
	atomic { LIVE;
		want = 0; v = 0; b = 0; b2 = 0; l = 0; seen = 0; got = 0;
		again = 0; owes[me] = 0; m = held[me];
		if
		:: m != 0 -> goto PUT
		:: n == 0 -> m = 0; ended[me] = 1; goto out	/* may keep */
		:: m == 0 && n > 0 -> n--;
			if
			:: want = 1 :: want = 2 :: want = 3 :: want = 4
			fi;
			b = BUCKET(want); goto SEARCH
		fi }

	/* eddy_runset_put */
PUT:
#ifdef HINTFIRST
	atomic { LIVE; v = FREEBITS | m }
	atomic { LIVE; longest(v, m, l, seen); H[BUCKET(l)] = 1 }
	atomic { LIVE; T[BUCKET(l)] = 1 }
#endif
#ifdef LENBEFORE
	atomic { LIVE; v = FREEBITS | m }
#endif
#ifdef PLAINOR
	atomic { LIVE; got = W[0] }
#endif
	if
	:: atomic { LIVE && (m & LOW) -> assert((W[0] & m) == 0);
#ifdef PLAINOR
		W[0] = got | (m & LOW); got = 0;
#else
		W[0] = W[0] | (m & LOW);
#endif
#ifdef LENSTALE
		v = W[0];
#endif
		held[me] = held[me] & ~LOW; take_over(m & LOW) }
	:: atomic { LIVE && !(m & LOW) }
	fi;
	if
	:: atomic { LIVE && (m >> BITS) ->
		assert((W[1] & (m >> BITS)) == 0);
		W[1] = W[1] | (m >> BITS);
		held[me] = held[me] & LOW; take_over(m & ~LOW) }
	:: atomic { LIVE && !(m >> BITS) }
	fi;
#ifdef HINTFIRST
	atomic { LIVE; goto PUTDONE }
#endif
#if defined(LENBEFORE)
	atomic { LIVE;
#elif defined(LENSTALE)
	atomic { LIVE; if :: (m & LOW) == 0 -> v = W[0] :: else fi }
	atomic { LIVE; v = v | (W[1] << BITS);
#else
	atomic { LIVE; v = W[0] }
	atomic { LIVE; v = v | (W[1] << BITS);
#endif
#ifdef OWNLEN
		v = m; longest(v, m, l, seen);
#elif defined(FIRSTBIT)
		d_step { hx = m & ~(m - 1) };
		ht = hx; longest(v, ht, l, seen); ht = 0;
#else
		longest(v, m, l, seen);
#endif
		v = 0;
		if
		:: l == 0 -> goto PUTDONE
		:: else -> b2 = BUCKET(l); l = 0
		fi }
#ifdef TOPDOWN
	atomic { LIVE; take_over_seen(seen); T[b2] = 1 }
	atomic { LIVE; H[b2] = 1 }
#else
#ifdef STOPEARLY
	atomic { LIVE; take_over_seen(seen);
		if :: H[b2] -> goto PUTDONE :: else -> H[b2] = 1 fi }
#else
	atomic { LIVE; take_over_seen(seen); H[b2] = 1 }
#endif
	atomic { LIVE; T[b2] = 1 }
#endif
PUTDONE:
	atomic { LIVE; owes[me] = 0; seen = 0; b2 = 0; m = 0; l = 0; v = 0;
		if :: again -> again = 0; goto LOOK :: else -> goto next fi }

	/* search for want pages, buckets b and up */
SEARCH:
	atomic { LIVE; m = 0; v = 0; b2 = 0; seen = 0; owes[me] = 0;
		if
		:: b == NBUCKET -> goto next
		:: b < NBUCKET && T[b] -> skip
		:: b < NBUCKET && !T[b] -> b++; goto SEARCH
		fi }
	atomic { LIVE; if :: H[b] -> skip :: else -> goto CLEARTOP fi }
LOOK:
	atomic { LIVE; v = W[0] }
	atomic { LIVE; v = v | (W[1] << BITS);
		d_step { m = 0; hi = 0;		/* first fit */
			do
			:: hi + want <= NB && m == 0 ->
				hx = ((1 << want) - 1) << hi;
				if :: (v & hx) == hx -> m = hx :: else fi;
				hi++
			:: else -> break
			od; hi = 0; hx = 0 };
		if :: m == 0 -> goto NORUN :: else -> v = 0 fi }
	if
	:: atomic { LIVE && (m & LOW) ->
		if
		:: (W[0] & m & LOW) == (m & LOW) ->
			W[0] = W[0] & ~m; held[me] = m & LOW
		:: else -> m = 0; goto LOOK
		fi }
	:: atomic { LIVE && !(m & LOW) }
	fi;
	if
	:: atomic { LIVE && (m >> BITS) ->
		if
		:: (W[1] & (m >> BITS)) == (m >> BITS) ->
			W[1] = W[1] & ~(m >> BITS); held[me] = m
		:: else -> m = m & LOW;		/* roll back */
			if
			:: m -> again = 1; goto PUT
			:: else -> goto LOOK
			fi
		fi }
	:: atomic { LIVE && !(m >> BITS) }
	fi;
	atomic { LIVE; goto next }

	/* no run of want pages here */
NORUN:
	atomic { LIVE; longest(v, 0, l, seen); seen = 0;
		if	/* the hint is right, the run only too short */
		:: l && BUCKET(l) == b -> l = 0; b++; goto SEARCH
		:: else -> l = 0
		fi }
#ifdef LOOKFIRST
	atomic { LIVE; v = W[0] }
	atomic { LIVE; v = v | (W[1] << BITS) }
	atomic { LIVE; H[b] = 0; owes[me] = FREEBITS;
#else
	atomic { LIVE; H[b] = 0; owes[me] = FREEBITS }
#ifdef NORELOOK
	atomic { LIVE; v = 0; goto CLEARTOP }
#endif
	atomic { LIVE; v = W[0] }
	atomic { LIVE; v = v | (W[1] << BITS);
#endif
		longest(v, 0, l, seen); v = 0;
		if
		:: l == 0 -> goto CLEARTOP
#ifdef NODOWN
		:: l != 0 && BUCKET(l) != b -> l = 0; seen = 0; goto CLEARTOP
		:: l != 0 && BUCKET(l) == b -> b2 = b; l = 0
#else
		:: else -> b2 = BUCKET(l); l = 0
#endif
		fi }
	atomic { LIVE; take_over_seen(seen); H[b2] = 1 }
	atomic { LIVE; T[b2] = 1; seen = 0; b2 = 0 }
CLEARTOP:
	atomic { LIVE; owes[me] = 0; v = 0; seen = 0;
		if :: H[b] -> b++; goto SEARCH :: else fi }
	atomic { LIVE; T[b] = 0; owes[me] = FREEBITS }
#ifndef NORELOOKTOP
	atomic { LIVE; if :: H[b] -> T[b] = 1 :: else fi }
#endif
	atomic { LIVE; b++; goto SEARCH }
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
	byte i, l, s, debt, ok;

	atomic {
		held[0] = START0; held[1] = START1;
#if NP > 2
		held[2] = START2;
#endif
		W[0] = ALL & ~(START0 | START1 | START2);
		W[1] = W[0] >> BITS; W[0] = W[0] & LOW;
#ifdef HINTED
		H[HINTED] = 1; T[HINTED] = 1;
#else
		if
		:: FREEBITS ->
			longest(FREEBITS, 0, l, s);
			H[BUCKET(l)] = 1; T[BUCKET(l)] = 1; l = 0; s = 0
		:: else
		fi;
#endif
		for (i : 0 .. NP - 1) {
			if
			:: i == NP - 1 -> run worker(i, LAST)
			:: i == 0 -> run worker(i, FIRST)
			:: else -> run worker(i, CLAIMS)
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
		:: timeout -> assert(false)	/* somebody waits */
		fi;
		l = FREEBITS;
		for (i : 0 .. NP - 1) {
			assert((l & held[i]) == 0);
			l = l | held[i];
			if :: dead[i] -> debt = debt | owes[i] :: else fi
		};
		assert(l == ALL);		/* no page is lost */
		/* every run is found, but those that the dead owed */
		for (i : 0 .. NB - 1) {
			if
			:: (FREEBITS >> i) & 1 ->
				longest(FREEBITS, (1 << i), l, s);
				ok = (s & debt) != 0;
				if
				:: BUCKET(l) <= 0 && H[0] && T[0] -> ok = 1
				:: BUCKET(l) <= 1 && H[1] && T[1] -> ok = 1
				:: H[2] && T[2] -> ok = 1
				:: else
				fi;
				assert(ok)
			:: else
			fi
		}
	}
}
