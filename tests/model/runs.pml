/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * runs.pml - the pages of a chunk: free bits, dirty bits, tags, purging.
 *
 * A set free bit may be taken by whoever clears it; a claim takes its words
 * in ascending order and puts back what it has when it meets a conflict.  A
 * dirty bit is read and set in one operation after the claim, so that calloc
 * learns what is zero.  A purge is a claim, too.  A free takes the head's tag
 * away first, then sets the bits.  Who has hints to care for: runhint.pml.
 *
 * One step is one access to shared memory.  README.md lists the mutants.
 */
#ifndef BITS
#define BITS	2
#endif
#define NB	(2 * BITS)
#define LOW	((1 << BITS) - 1)
#define ALL	((1 << NB) - 1)
#define NP	3
#define PURGER	2
#ifndef OPS
#define OPS	2
#endif
#ifndef LAST
#define LAST	1
#endif
#ifndef PURGES
#define PURGES	1
#endif
#ifndef ROLLS
#define ROLLS	4		/* more roll-backs than others can cause */
#endif
#define LIVE	!dead[me]
#define PART(w)	((m >> ((w) * BITS)) & LOW)

byte W[2], D[2];		/* free bits, dirty bits */
byte tag[NB];			/* pages | worker << 4 */
byte zero;			/* ghost: what the pages hold */
byte held[NP];			/* ghost: claimed by this worker */
byte rolls, reports;
bool dead[NP], ended[NP];
hidden byte hi;

#define TAKE(w, mm) \
	W[w] = W[w] & ~(mm); \
	held[me] = held[me] | ((mm) << ((w) * BITS))
#define GIVE(w, mm) \
	assert((W[w] & (mm)) == 0); \
	W[w] = W[w] | (mm); \
	held[me] = held[me] & ~((mm) << ((w) * BITS))

proctype worker(byte me, n)
{
	byte m, h, size, v, z, w, got;
	bool down;

next:
	atomic { LIVE; m = 0; h = 0; v = 0; z = 0; w = 0; got = 0; size = 0;
		down = 0;
		if
		:: n == 0 -> ended[me] = 1; goto out
		:: n > 0 -> n--;
			if :: size = 1 :: size = 2 :: size = 3 fi
		fi }

	/* eddy_runset_claim */
LOOK:
	atomic { LIVE; v = W[0]; m = 0 }
	atomic { LIVE; v = v | (W[1] << BITS) }
	atomic { LIVE;
#ifdef ANYPLACE
		select (h : 0 .. NB - 1);
		m = ((1 << size) - 1) << h;
		if
		:: h + size <= NB && (v & m) == m -> skip
		:: else -> goto next
		fi;
#else
		h = 0;
		do
		:: h + size <= NB ->
			m = ((1 << size) - 1) << h;
			if :: (v & m) == m -> break :: else -> h++ fi
		:: else -> m = 0; goto next
		od;
#endif
		v = 0;
#ifdef MIXED
		if :: (m & LOW) && (m >> BITS) -> down = (me == 1) :: else fi;
#endif
		w = (down -> 1 : (m & LOW -> 0 : 1)) }
#ifdef DIRTYEARLY
	atomic { LIVE; z = m & ~(D[0] | (D[1] << BITS));
		D[0] = D[0] | (m & LOW); D[1] = D[1] | (m >> BITS) }
#endif
#ifdef PLAINAND
	atomic { LIVE; got = W[w];
		if :: (got & PART(w)) == PART(w) -> skip
		:: else -> got = 0; goto LOOK fi }
	atomic { LIVE; W[w] = got & ~PART(w);
		held[me] = PART(w) << (w * BITS); got = 0 }
#else
	atomic { LIVE;
		if
		:: (W[w] & PART(w)) == PART(w) -> TAKE(w, PART(w))
		:: else -> goto LOOK
		fi }
#endif
	if
	:: atomic { LIVE && PART(1 - w) && (down || w == 0) ->
		if
		:: (W[1 - w] & PART(1 - w)) == PART(1 - w) ->
			TAKE(1 - w, PART(1 - w))
		:: else -> goto ROLLBACK
		fi }
	:: atomic { LIVE && !(PART(1 - w) && (down || w == 0)) }
	fi;
	atomic { LIVE; goto GOT };
ROLLBACK:
	atomic { LIVE; GIVE(w, PART(w)); rolls++; assert(rolls <= ROLLS);
		goto LOOK };
GOT:
#if !defined(DIRTYEARLY) && !defined(NODIRTY)
#ifdef PLAINMARK
	if
	:: atomic { LIVE && (m & LOW) -> v = D[0] };
	   atomic { LIVE; z = m & LOW & ~v; D[0] = v | (m & LOW); v = 0 }
#else
	if
	:: atomic { LIVE && (m & LOW) ->
		z = m & LOW & ~D[0]; D[0] = D[0] | (m & LOW) }
#endif
	:: atomic { LIVE && !(m & LOW) }
	fi;
	if
	:: atomic { LIVE && (m >> BITS) ->
		z = z | (m & ~LOW & ~(D[1] << BITS));
		D[1] = D[1] | (m >> BITS) }
	:: atomic { LIVE && !(m >> BITS) }
	fi;
#endif
#ifdef NODIRTY
	atomic { LIVE; z = m & ~(D[0] | (D[1] << BITS)) }
#endif
	atomic { LIVE;
		assert((z & ~zero) == 0);	/* calloc is not deceived */
		z = 0; zero = zero & ~m;	/* the program writes */
		assert(tag[h] == 0); tag[h] = size | (me << 4);
		for (hi : 0 .. NP - 1) {
			assert(hi == me || (held[hi] & m) == 0)
		};
		hi = 0; assert(held[me] == m) }

	/* a free */
#ifdef BITSFIRST
	atomic { LIVE; w = (m & LOW -> 0 : 1); GIVE(w, PART(w)) }
	if
	:: atomic { LIVE && w == 0 && PART(1) -> GIVE(1, PART(1)) }
	:: atomic { LIVE && !(w == 0 && PART(1)) }
	fi;
	atomic { LIVE; got = tag[h]; tag[h] = 0;
		assert(got == (size | (me << 4))); goto next }
#else
	atomic { LIVE; got = tag[h]; tag[h] = 0;
		assert(got == (size | (me << 4))) }
	atomic { LIVE; w = (m & LOW -> 0 : 1); GIVE(w, PART(w)) }
	if
	:: atomic { LIVE && w == 0 && PART(1) -> GIVE(1, PART(1)) }
	:: atomic { LIVE && !(w == 0 && PART(1)) }
	fi;
	atomic { LIVE; goto next }
#endif
out:
	skip
}

#ifdef TWICE			/* two threads free one run */
proctype freer(byte me)
{
	byte got;

#ifdef READTAG
	atomic { LIVE; got = tag[0] }
	atomic { LIVE; tag[0] = 0;
#else
	atomic { LIVE; got = tag[0]; tag[0] = 0;
#endif
		if
		:: got == 0 -> reports++
		:: got -> held[0] = 0; held[me] = 3 
		fi }
	if
	:: atomic { LIVE && got -> GIVE(0, 3) }
	:: atomic { LIVE && !got }
	fi;
	atomic { LIVE; got = 0; ended[me] = 1 }
}
#endif

proctype purger(byte me, n)
{
	byte w, mm, d;

next:
	atomic { LIVE; mm = 0; d = 0; w = 0;
		if
		:: n == 0 -> ended[me] = 1; goto out
		:: n > 0 -> n--; if :: w = 0 :: w = 1 fi
		fi }
	atomic { LIVE; mm = D[w] }
	atomic { LIVE; mm = mm & W[w];
		if
		:: mm == 0 -> goto next
		:: mm -> skip
		:: mm & 1 -> mm = 1
		:: mm & 2 -> mm = 2
		fi }
#ifndef NOCLAIM
	atomic { LIVE;
		if :: (W[w] & mm) == mm -> TAKE(w, mm) :: else -> goto next fi }
#endif
#ifdef CLEARLATE
	atomic { LIVE; zero = zero | (mm << (w * BITS)) }
	atomic { LIVE; GIVE(w, mm) }
	atomic { LIVE; D[w] = D[w] & ~mm; goto next }
#else
#ifdef CLEARFIRST		/* and no word when the call is refused */
	atomic { LIVE; D[w] = D[w] & ~mm }
	atomic { LIVE;
		if :: zero = zero | (mm << (w * BITS)) :: skip fi }
#else
	atomic { LIVE;
		if
		:: zero = zero | (mm << (w * BITS))
		:: goto RELEASE			/* refused */
		fi }
#ifdef PLAINCLEAR
	atomic { LIVE; d = D[w] }
	atomic { LIVE; D[w] = d & ~mm; d = 0 }
#else
	atomic { LIVE; D[w] = D[w] & ~mm }
#endif
#endif
RELEASE:
#ifdef NOCLAIM
	atomic { LIVE; goto next }
#else
	atomic { LIVE; GIVE(w, mm); goto next }
#endif
#endif
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
	byte i, x; bool death;

	atomic {
#ifdef TWICE
		tag[0] = 2; held[0] = 3; W[0] = LOW & ~3; W[1] = LOW; D[0] = 3;
		zero = ALL & ~3;
		run freer(0); run freer(1); run purger(PURGER, PURGES);
#else
		W[0] = LOW; W[1] = LOW; D[0] = 2; D[1] = 1;
		zero = ALL & ~(D[0] | (D[1] << BITS));
		run worker(0, OPS); run worker(1, LAST);
		run purger(PURGER, PURGES);
#endif
#ifdef KILL
		run killer()
#endif
	}
	atomic {
		if
		:: (ended[0] || dead[0]) && (ended[1] || dead[1]) &&
		   (ended[2] || dead[2]) -> skip
		:: timeout -> assert(false)
		fi;
		x = W[0] | (W[1] << BITS);
		for (i : 0 .. NP - 1) {
			death = death || dead[i];
			assert((x & held[i]) == 0);
			x = x | held[i];
			assert(held[i] == 0 || dead[i])
		};
		assert(x == ALL);
		/* clean pages are zero, but for those of the dead */
		x = W[0] | (W[1] << BITS);
		assert((x & ~(D[0] | (D[1] << BITS)) & ~zero) == 0);
#ifdef TWICE
		assert(reports == 1 || death)
#endif
	}
}
