/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ring.pml - the return ring of one row: cells, descriptors, batches.
 *
 * A cell holds the number of a full descriptor, of an empty one, or 0.  put:
 * look for a cell that is not full; write the batch into the spare, the empty
 * descriptor in hand, or else into one from the free stack or a fresh one by
 * fetch-and-add; compare-and-swap the cell; what was in it is the spare now.
 * All full: keep the objects.  take: exchange a full cell for the spare; read
 * the batch that comes out; its descriptor is the spare.  A spare is laid by
 * on the CPU's shelf (a row of its own) or dropped on the free stack.  The head
 * of the free stack is {number, tag}; the tag grows at pops only.
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
byte shelf;			/* in sections, hence in one step */
byte top, tag;			/* one word */
byte given;			/* descriptors 1 .. given have been handed out */
byte link[4], n[4], p[4];	/* the descriptors; link[0] stays 0 */
bool slab[4];			/* batches that are in their slabs */
bool dead[NP], ended[NP];

/* ghosts: who has it in hand, + 1; numbers whose memory was refused */
byte own[4], hand[4];
bool refused[4];

#define FULL	8		/* a bit in the cell */
#define NR(x)	((x) & 7)
#define ISFULL(x) ((x) >= FULL)
#define IN(c, b) (ISFULL(cell[c]) && p[NR(cell[c])] == b && n[NR(cell[c])] == b)
#define BATCH(b) ((hand[b] != 0) + slab[b] + IN(0, b) + IN(1, b) == 1)
#define DESC(d)	(ND < d || (own[d] != 0) + refused[d] + (d > given) + \
	(top == d) + (link[top] == d) + (link[link[top]] == d) + \
	(shelf == d) + (NR(cell[0]) == d) + (NR(cell[1]) == d) == 1)
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
	byte d;			/* the descriptor in hand: spare, or filled */
	byte i, t, u, x, y;
	byte got;		/* a descriptor for the batch */
#ifdef DROPEARLY
	byte e;
#endif

next:
	atomic { LIVE; assert(!d); i = 0; t = 0; u = 0; x = 0; got = 0;
		if
		:: k == 0 && !b -> ended[me] = 1; goto out
		:: b ->				/* eddy_arena_put */
			hand[b] = 0; slab[b] = 1; b = 0; goto next
		:: k && b && me != 2 -> k--
		:: k && !b -> k--; i = CELLS
		:: k && !b && me != 2 && slab[1] ->	/* a row overflows */
			k--; b = 1; slab[b] = 0; hand[b] = me + 1; goto next
		:: k && !b && me != 2 && slab[2] ->
			k--; b = 2; slab[b] = 0; hand[b] = me + 1; goto next
		:: k && !b && me != 2 && slab[3] ->
			k--; b = 3; slab[b] = 0; hand[b] = me + 1; goto next
		fi;
		if				/* carry_from */
		:: shelf -> d = shelf; shelf = 0; own[d] = me + 1
		:: !shelf
		fi;
		if :: b :: !b -> goto TAKE fi }

	/* eddy_returns_put: open_cell */
SCAN:
	atomic { LIVE;
		if
		:: i == CELLS ->		/* nowhere */
#ifdef FULLTRUE
			b = 0;
#elif defined(FULLKEEP)
			d = 0;
#endif
			goto LAY
		:: i < CELLS && ISFULL(cell[i]) -> i++; goto SCAN
		:: i < CELLS && !ISFULL(cell[i]) ->
			x = cell[i];
			if
			:: got -> goto PUT
			:: !got && d -> got = 1; goto FILL
			:: !got && !d -> got = 1
			fi
		fi }
	/* batch_get; x is what was seen in the cell */
	atomic { LIVE; t = top; u = tag }
POP:
	if
	:: atomic { LIVE && t == 0 };
#ifdef PLAINADD
	   atomic { LIVE; u = given + 1 };
	   atomic { LIVE; given = u; d = u; u = 0;
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
			refused[d] = 1; d = 0; goto next
#endif
		fi };
	   atomic { LIVE; given--; goto next }
#ifdef STALELINK
	:: atomic { LIVE && t && got < 2 -> y = link[t]; got = 2 }
	:: atomic { LIVE && t && got == 2 }
#elif defined(LINKAFTER)		/* all of the stack, the rest back */
	:: atomic { LIVE && t };
	   atomic { LIVE;
		if
		:: top == t && tag == u -> top = 0; tag++; d = t;
			own[d] = me + 1
		:: else -> t = top; u = tag; goto POP
		fi };
	   atomic { LIVE; y = link[d] };
	   atomic { LIVE; top = y; goto FILL }
#else
	:: atomic { LIVE && t -> y = link[t] }
#endif
	fi;
	atomic { LIVE;
		if
		:: top == t && tag == u ->
			top = y; tag = POPTAG; d = t; assert(!own[d]);
			own[d] = me + 1
		:: else -> t = top; u = tag; goto POP
		fi }
FILL:
#ifndef NLATE
	atomic { LIVE; t = 0; u = 0; y = 0; n[d] = b }
#endif
#ifndef PLATE
	atomic { LIVE; t = 0; u = 0; y = 0; p[d] = b }
#endif
PUT:
	atomic { LIVE;
		if
#ifdef BLINDPUT
		:: true ->
#elif defined(BITALONE)			/* x is what was seen before */
		:: ISFULL(cell[i]) -> i = 0; x = 0; goto SCAN
		:: !ISFULL(cell[i]) ->
#else
		:: cell[i] != x -> i = 0; x = 0; goto SCAN
		:: cell[i] == x ->
#endif
			cell[i] = d + FULL; own[d] = 0; hand[b] = 0;
#if defined(NLATE) || defined(PLATE)
			t = d;
#else
			b = 0;
#endif
#ifdef NOSPARE				/* as if it had held 0 */
			d = 0;
#else
			d = x; own[d] = (d -> me + 1 : 0);
#endif
			i = 0; x = 0
		fi }
#ifdef NLATE
	atomic { LIVE; n[t] = b; b = 0; goto LAY }
#elif defined(PLATE)
	atomic { LIVE; p[t] = b; b = 0; goto LAY }
#else
	goto LAY;
#endif

	/* eddy_returns_take */
TAKE:
	atomic { LIVE;
		if
		:: i == 0 -> goto LAY		/* there is none */
		:: i && !ISFULL(cell[i - 1]) -> i--; goto TAKE
		:: i && ISFULL(cell[i - 1])
		fi }
	/* take_cell */
#ifdef LOADSTORE
	atomic { LIVE; x = cell[i - 1] }
	atomic { LIVE; cell[i - 1] = d;
#else
	atomic { LIVE; x = cell[i - 1]; cell[i - 1] = d;
#endif
		own[d] = 0; d = NR(x);
		if
		:: d -> assert(!own[d]); own[d] = me + 1
		:: !d
		fi;
		if
#ifdef BELIEVE
		:: !ISFULL(x) -> assert(false)
#else
		:: !ISFULL(x) -> i--; x = 0; goto TAKE
#endif
		:: ISFULL(x) -> assert(!hand[p[d]]);
			hand[p[d]] = me + 1; i = 0
		fi }
#ifdef DROPEARLY
	atomic { LIVE; e = d; goto LAY }
READ:
	atomic { LIVE; x = n[e] }
	atomic { LIVE; b = p[e]; assert(x == b && hand[b] == me + 1); e = 0; goto next }
#endif
	/* unpack */
	atomic { LIVE; x = n[d] }
	atomic { LIVE; b = p[d]; assert(x == b && hand[b] == me + 1); x = 0 }

	/* carry_to; eddy_returns_drop */
LAY:
	atomic { LIVE; i = 0; got = 0; x = 0;
		if
		:: !d -> goto DONE
		:: d && !shelf -> shelf = d; own[d] = 0; d = 0; goto DONE
		:: d -> t = top; u = tag
		fi }
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
			top = d; tag = PUSHTAG; own[d] = 0;
#ifndef LINKLATE
			d = 0
#endif
		fi }
#ifdef LINKLATE
	atomic { LIVE; link[d] = t; d = 0 }
#endif
DONE:
#ifdef DROPEARLY
	atomic { LIVE; if :: e -> goto READ :: !e -> goto next fi };
#else
	goto next;
#endif
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
		given = 3; top = 1; cell[0] = 2;
		cell[1] = 3 + FULL; n[3] = 3; p[3] = 3;
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
