/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ring.pml - the return ring of one row: cells, descriptors, batches.
 *
 * put: look for an empty cell, take a descriptor from the free stack or a
 * fresh one by fetch-and-add, write the batch into it, compare-and-swap the
 * cell 0 -> its number; all full: drop the descriptor, keep the objects.
 * take: exchange a cell with 0, read the batch, drop the descriptor.  The
 * head of the free stack is {number, tag}; the tag grows at pops only.
 *
 * A batch b is written as n = b and p = b, in two steps, and read in two.  A
 * monitor demands after every step that each descriptor and each batch is in
 * exactly one place.  Any worker may stop for ever at any step (-DKILL=n).
 * README.md lists the mutants.
 */
#define CELLS	2
#ifndef ND
#define ND	3		/* descriptors there may be */
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

byte cell[CELLS];
byte top, tag;			/* one word */
byte given;			/* descriptors 1 .. given have been handed out */
byte link[4], n[4], p[4];	/* the descriptors; link[0] stays 0 */
bool slab[4];			/* batches that are in their slabs */
bool dead[NP], ended[NP];

/* ghosts: who has it in hand, + 1; numbers whose memory was refused */
byte own[4], hand[4];
bool refused[4];

#define IN(c, b) (cell[c] && p[cell[c]] == b && n[cell[c]] == b)
#define BATCH(b) ((hand[b] != 0) + slab[b] + IN(0, b) + IN(1, b) == 1)
#define DESC(d)	(ND < d || (own[d] != 0) + refused[d] + (d > given) + \
	(top == d) + (link[top] == d) + (link[link[top]] == d) + \
	(cell[0] == d) + (cell[1] == d) == 1)
#define ONCE	(BATCH(1) && BATCH(2) && BATCH(3) && \
	DESC(1) && DESC(2) && DESC(3))

#ifdef NOTAG
#define POPTAG	tag
#define PUSHTAG	tag
#elif defined(TAGPUSH)		/* no mistake: pushes only */
#define POPTAG	tag
#define PUSHTAG	tag + 1
#else
#define POPTAG	tag + 1
#define PUSHTAG	tag
#endif

proctype worker(byte me, b, k)	/* b: the batch in hand, or 0; k: operations */
{
	byte d, i, t, u, x;
#ifdef DROPEARLY
	byte e;
#endif

next:
	atomic { LIVE; d = 0; i = 0; t = 0; u = 0; x = 0;
		if
		:: k == 0 && !b -> ended[me] = 1; goto out
		:: b ->				/* eddy_arena_put */
			hand[b] = 0; slab[b] = 1; b = 0; goto next
		:: k && b && me != 2 -> k--
		:: k && !b -> k--; i = CELLS; goto TAKE
		:: k && !b && me != 2 && slab[1] ->	/* a row overflows */
			k--; b = 1; slab[b] = 0; hand[b] = me + 1; goto next
		:: k && !b && me != 2 && slab[2] ->
			k--; b = 2; slab[b] = 0; hand[b] = me + 1; goto next
		:: k && !b && me != 2 && slab[3] ->
			k--; b = 3; slab[b] = 0; hand[b] = me + 1; goto next
		fi }

	/* eddy_returns_put: empty_cell */
SCAN:
	atomic { LIVE;
		if
		:: i == CELLS -> goto FULL
		:: i < CELLS && cell[i] -> i++; goto SCAN
		:: i < CELLS && !cell[i] && d -> goto PUT
		:: i < CELLS && !cell[i] && !d
		fi }
	/* batch_get */
	atomic { LIVE; t = top; u = tag }
POP:
	if
	:: atomic { LIVE && t == 0 };
#ifdef PLAINADD
	   atomic { LIVE; x = given + 1 };
	   atomic { LIVE; given = x; d = x; x = 0;
#else
	   atomic { LIVE; given++; d = given;
#endif
		if
		:: d > ND -> d = 0
		:: d <= ND -> assert(!own[d]); own[d] = me + 1; goto FILL
		:: d <= ND ->			/* no memory for it */
#ifdef UNCOUNT
			d = 0
#else
			refused[d] = 1; goto next
#endif
		fi };
	   atomic { LIVE; given--; goto next }
#ifdef STALELINK
	:: atomic { LIVE && t && !x -> x = link[t] }
	:: atomic { LIVE && t && x }
#elif defined(LINKAFTER)		/* all of the stack, the rest back */
	:: atomic { LIVE && t };
	   atomic { LIVE;
		if
		:: top == t && tag == u -> top = 0; tag++; d = t;
			own[d] = me + 1
		:: else -> t = top; u = tag; goto POP
		fi };
	   atomic { LIVE; x = link[d] };
	   atomic { LIVE; top = x; goto FILL }
#else
	:: atomic { LIVE && t -> x = link[t] }
#endif
	fi;
	atomic { LIVE;
		if
		:: top == t && tag == u ->
			top = x; tag = POPTAG; d = t; assert(!own[d]);
			own[d] = me + 1
		:: else -> t = top; u = tag; goto POP
		fi }
FILL:
#ifndef NLATE
	atomic { LIVE; t = 0; u = 0; x = 0; n[d] = b }
#endif
#ifndef PLATE
	atomic { LIVE; t = 0; u = 0; x = 0; p[d] = b }
#endif
PUT:
	atomic { LIVE;
		if
#ifdef BLINDPUT
		:: true ->
#else
		:: cell[i] ->
			i = 0; goto SCAN
		:: !cell[i] ->
#endif
			cell[i] = d; own[d] = 0; hand[b] = 0;
#if !defined(NLATE) && !defined(PLATE)
			b = 0; goto next
#endif
		fi }
#ifdef NLATE
	atomic { LIVE; n[d] = b; b = 0; goto next }
#elif defined(PLATE)
	atomic { LIVE; p[d] = b; b = 0; goto next }
#endif
FULL:
#ifdef FULLTRUE
	atomic { LIVE; b = 0; if :: !d -> goto next :: d -> goto DROP fi }
#elif defined(FULLKEEP)
	atomic { LIVE; goto next }
#else
	atomic { LIVE; if :: !d -> goto next :: d -> goto DROP fi }
#endif

	/* eddy_returns_take */
TAKE:
	atomic { LIVE;
		if
		:: i == 0 -> goto next		/* there is none */
		:: i && !cell[i - 1] -> i--; goto TAKE
		:: i && cell[i - 1]
		fi }
#ifdef LOADSTORE
	atomic { LIVE; d = cell[i - 1] }
	atomic { LIVE; cell[i - 1] = 0;
#else
	atomic { LIVE; d = cell[i - 1]; cell[i - 1] = 0;
#endif
#ifdef BELIEVE
		assert(d);
#endif
		if
		:: !d -> i--; goto TAKE
		:: d -> assert(!own[d] && !hand[p[d]]);
			own[d] = me + 1; hand[p[d]] = me + 1; i = 0
		fi }
#ifdef DROPEARLY
	atomic { LIVE; e = d; goto DROP }
READ:
	atomic { LIVE; d = e; e = 0 }
#endif
	atomic { LIVE; x = n[d] }
	atomic { LIVE; b = p[d]; assert(x == b && hand[b] == me + 1); x = 0 }
#ifdef DROPEARLY
	atomic { LIVE; goto next }
#endif

	/* batch_drop */
DROP:
	atomic { LIVE; i = 0; t = top; u = tag }
PUSH:
#ifndef LINKLATE
	atomic { LIVE; assert(d && own[d] == me + 1); link[d] = t }
#endif
#ifdef LINKONCE
AGAIN:
#endif
	atomic { LIVE;
		if
#ifdef BLINDDROP
		:: true ->
#else
		:: top != t || tag != u -> t = top; u = tag;
#ifdef LINKONCE
			goto AGAIN
#else
			goto PUSH
#endif
		:: top == t && tag == u ->
#endif
			top = d; tag = PUSHTAG; own[d] = 0
		fi }
#ifdef LINKLATE
	atomic { LIVE; link[d] = t }
#endif
#ifdef DROPEARLY
	atomic { LIVE; if :: e -> goto READ :: !e fi }
#endif
	goto next;
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
	byte i, j, x, y, deaths;

	atomic {
		hand[1] = 1; hand[2] = 2;
#ifdef FRESH			/* no descriptor yet, an empty ring */
		slab[3] = 1;
#else
		given = 3; top = 1; link[1] = 2;
		cell[1] = 3; n[3] = 3; p[3] = 3;
#endif
		run monitor();
		run worker(0, 1, OPS); run worker(1, 2, LAST);
#if NP == 3
		run worker(2, 0, CELLS);
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
			for (j : 1 .. 3) {
				x = x + (own[j] == i + 1);
				y = y + (hand[j] == i + 1)
			}
			assert(x <= dead[i] && y <= dead[i]);
			deaths = deaths + dead[i]
		}
		assert(given <= ND + deaths)
	}
}
