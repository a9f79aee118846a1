/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ring_spill.pml - the return ring of one row when its cells are full.
 *
 * put: write the batch into a descriptor, the spare or one off the free stack;
 * swap it for what is in a cell that is not full; none: push it on the spill
 * stack, {number, tag}; the depth, written into the descriptor, is that of the
 * top which the CAS expects, and one more.  More than CAP: the objects stay,
 * the descriptor is a spare.
 * take: exchange a full cell for the spare; none: drop the spare, pop one off
 * the spill stack, two tries; read the batch.  A descriptor has one link for
 * both stacks; either tag grows at pops only.  A worker keeps its spare from
 * one operation to the next, or drops it, as a sweep does.
 *
 * A monitor demands after every step that each descriptor and each batch is
 * in exactly one place, that the top knows how many lie in the spill, and that
 * there are CAP at most.  Any worker may stop for ever at any step (-DKILL=n).
 * Fresh numbers are in ring.pml.  README.md lists the mutants.
 */
#define ND	4		/* descriptors, and batches */
#ifndef CAP
#define CAP	2
#endif
#ifndef NP
#define NP	2		/* the third one sweeps */
#endif
#ifndef OPS
#define OPS	3		/* of the first worker */
#endif
#ifndef LAST
#define LAST	3		/* and of the second */
#endif
#define LIVE	!dead[me]
#define FULL	8		/* a bit in the cell */
#define NR(x)	((x) & 7)
#define ISFULL(x) ((x) >= FULL)

byte cell;
byte top, tag;			/* unused descriptors; one word */
byte spill, stag;		/* the same of those in the spill */
byte link[5], deep[5], p[5];	/* the descriptors; link[0] stays 0 */
bool slab[5];			/* batches that are in their slabs */
bool dead[NP], ended[NP];
#ifdef COUNTER
byte count;
#endif

/* ghosts: who has it in hand, + 1 */
byte own[5], hand[5];

#define ON(s, d) ((s == d) + (link[s] == d) + (link[link[s]] == d) + \
	(link[link[link[s]]] == d))
#define DESC(d)	((own[d] != 0) + (NR(cell) == d) + ON(top, d) + ON(spill, d) == 1)
#define HOLDS(d, b) (d && p[d] == b)
#define INCELL	(ISFULL(cell) -> NR(cell) : 0)
#define BATCH(b) ((hand[b] != 0) + slab[b] + HOLDS(INCELL, b) + \
	HOLDS(spill, b) + HOLDS(link[spill], b) + \
	HOLDS(link[link[spill]], b) + HOLDS(link[link[link[spill]]], b) == 1)
#define LENGTH	((spill != 0) + (link[spill] != 0) + \
	(link[link[spill]] != 0) + (link[link[link[spill]]] != 0))
#ifdef COUNTER
#define BOUNDED	(LENGTH <= CAP)
#else
#define BOUNDED	(LENGTH <= CAP && (!spill || deep[spill] == LENGTH))
#endif
#define ONCE	(DESC(1) && DESC(2) && DESC(3) && DESC(4) && \
	BATCH(1) && BATCH(2) && BATCH(3) && BATCH(4) && BOUNDED)

#ifdef NOTAG
#define SAME	(spill == t)
#else
#define SAME	(spill == t && stag == u)
#endif
#ifdef TAGPUSH			/* no mistake: pushes only */
#define POPTAG	stag
#define PUSHTAG	stag + 1
#else
#define POPTAG	stag + 1
#define PUSHTAG	stag
#endif
#define DEPTH(s) (s -> deep[s] + 1 : 1)

proctype worker(byte me, b, k)	/* b: the batch in hand, or 0; k: operations */
{
	byte d;			/* the descriptor in hand: spare, or filled */
	byte t, u, x, y, i;
#ifdef DROPEARLY
	byte e;
#endif

next:
	atomic { LIVE; t = 0; u = 0; x = 0; y = 0; i = 0;
		if
		:: d -> goto drop
		:: k == 0 && !b && !d -> ended[me] = 1; goto out
		:: b && k && me != 2 -> k--; goto put
		:: b ->				/* eddy_arena_put */
			hand[b] = 0; slab[b] = 1; b = 0; goto next
		:: k && !b -> k--; goto take
		:: k && !b && me != 2 ->	/* a row overflows */
			k--;
			if
			:: slab[1] -> b = 1
			:: !slab[1] && slab[2] -> b = 2
			:: !slab[1] && !slab[2] && slab[3] -> b = 3
			:: !slab[1] && !slab[2] && !slab[3] && slab[4] -> b = 4
			:: else -> goto next
			fi;
			slab[b] = 0; hand[b] = me + 1
		fi }

	/* eddy_returns_put */
put:
	atomic { LIVE; if :: d -> goto fill :: !d fi;
		t = top; u = tag; if :: !t -> goto next :: t fi };
	atomic { LIVE; x = link[t] };
	atomic { LIVE;
		if
		:: top == t && tag == u -> top = x; tag++; d = t;
			assert(!own[d]); own[d] = me + 1; t = 0; u = 0; x = 0
		:: else -> goto put
		fi };
fill:
	atomic { LIVE; p[d] = b };
cells:
	atomic { LIVE; x = cell; if :: ISFULL(x) -> x = 0; goto spill_over :: !ISFULL(x) fi };
	atomic { LIVE;
		if
		:: cell != x -> x = 0; goto cells
		:: cell == x -> cell = d + FULL; own[d] = 0; hand[b] = 0; b = 0;
			d = x; own[d] = (d -> me + 1 : 0); goto next
		fi };
spill_over:
#ifdef DEPTHBEFORE
	atomic { LIVE; y = spill };
	atomic { LIVE; y = DEPTH(y); if :: y > CAP -> goto above :: else fi };
#elif defined(COUNTER)
	atomic { LIVE; if :: count >= CAP -> goto above :: else -> count++ fi };
#endif
	atomic { LIVE; t = spill; u = stag };
push:
#if !defined(DEPTHBEFORE) && !defined(COUNTER)
	atomic { LIVE;
#ifdef DEPTHONCE
		if :: !i -> y = DEPTH(t); i = 1 :: else fi;
#else
		y = DEPTH(t);
#endif
#ifndef NOCAP
		if :: y > CAP -> goto above :: else fi
#endif
	};
#endif
#ifdef LINKONCE
	atomic { LIVE; if :: !i -> link[d] = t; i = 1 :: else fi };
#elif !defined(LINKLATE)
	atomic { LIVE; link[d] = t };
#endif
#ifndef DEPTHLATE
	atomic { LIVE; deep[d] = y };
#endif
	atomic { LIVE;
		if
#ifdef BLINDPUSH
		:: true ->
#elif defined(TOPONLY)
		:: spill != t -> t = spill; u = stag; goto push
		:: spill == t ->
#else
		:: !(SAME) -> t = spill; u = stag; goto push
		:: SAME ->
#endif
			spill = d; stag = PUSHTAG; own[d] = 0; hand[b] = 0
		fi };
#ifdef LINKLATE
	atomic { LIVE; link[d] = t };
#endif
#ifdef DEPTHLATE
	atomic { LIVE; deep[d] = y };
#endif
	atomic { LIVE; b = 0; d = 0; goto next };
above:					/* nowhere */
#ifdef FULLTRUE
	atomic { LIVE; b = 0; goto next };
#elif defined(FULLKEEP)
	atomic { LIVE; d = 0; goto next };
#else
	atomic { LIVE; goto next };
#endif

	/* eddy_returns_take */
take:
	atomic { LIVE; if :: !ISFULL(cell) -> goto spilled :: ISFULL(cell) fi };
	atomic { LIVE; x = cell; cell = d; own[d] = 0; d = NR(x);
		own[d] = (d -> me + 1 : 0);
		if
		:: ISFULL(x) -> x = 0; assert(!hand[p[d]]);
			hand[p[d]] = me + 1; goto read
		:: !ISFULL(x) -> x = 0
		fi };
	/* take_spilled */
spilled:
	atomic { LIVE;
		if
		:: !spill -> goto next
#ifdef TWOHELD
		:: spill
#else
		:: spill && d -> y = 1; goto drop	/* and come back */
		:: spill && !d
#endif
		fi };
popped:
	atomic { LIVE; y = 0; t = spill; u = stag };
pop:
	atomic { LIVE; if :: !t -> goto next :: else fi;
#ifdef STALELINK
		if :: !i -> x = link[t] :: else fi
#elif !defined(POPALL)
		x = link[t]
#endif
	};
	atomic { LIVE;
		if
#ifdef POPSTORE
		:: true ->
#else
		:: !(SAME) && i -> goto next		/* to the slabs */
		:: !(SAME) && !i -> i = 1; t = spill; u = stag; goto pop
		:: SAME ->
#endif
			spill = x; stag = POPTAG; d = t;
			assert(!own[d] && !hand[p[d]]);
			own[d] = me + 1; hand[p[d]] = me + 1
		fi };
#ifdef POPALL				/* and the others back */
	atomic { LIVE; x = link[d] };
	atomic { LIVE; spill = x };
#endif
#ifdef COUNTER
	atomic { LIVE; count-- };
#endif
read:
	atomic { LIVE; i = 0; x = 0; t = 0; u = 0;
#ifdef DROPEARLY
		e = d; goto drop };
late:
	atomic { LIVE;
		b = p[e]; e = 0;
#else
		b = p[d];
#endif
		assert(b && hand[b] == me + 1); goto next };

	/* eddy_returns_drop */
drop:
	atomic { LIVE; t = top; u = tag };
again:
	atomic { LIVE; assert(d && own[d] == me + 1); link[d] = t };
	atomic { LIVE;
		if
		:: top != t || tag != u -> t = top; u = tag; goto again
		:: else -> top = d; own[d] = 0; d = 0
		fi };
#ifdef DROPEARLY
	atomic { LIVE; if :: e -> goto late :: !e fi };
#endif
	atomic { LIVE; if :: y -> goto popped :: !y -> goto next fi };
out:
	skip
}

/* never moves, as long as all is in its place */
proctype monitor()
{
	atomic { !ONCE -> assert(false) }
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
	byte i, j, x, y;

	atomic {
		cell = 1 + FULL; p[1] = 1;
		spill = 2; link[2] = 3; deep[2] = 2; deep[3] = 1; p[2] = 2; p[3] = 3;
		top = 4; hand[4] = 1;
#ifdef COUNTER
		count = 2;
#endif
		run monitor();
		run worker(0, 4, OPS); run worker(1, 0, LAST);
#if NP == 3
		run worker(2, 0, 2);
#endif
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
		for (i : 0 .. NP - 1) {		/* one of each, by the dead */
			x = 0; y = 0;
			for (j : 1 .. 4) {
				x = x + (own[j] == i + 1);
				y = y + (hand[j] == i + 1)
			}
			assert(x <= dead[i] && y <= dead[i])
		}
#ifdef COUNTER
		assert(count == LENGTH)
#endif
	}
}
