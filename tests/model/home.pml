/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * home.pml - two CPUs of different homes, rows of one class, a ring a home.
 *
 * CPU c is of home c.  Its slot has a home word, zero until the slot is laid
 * out, and a row for either home; the other's is its remote row.  at[v] is the
 * CPU that worker v runs on; a mover changes it at any time.  sec[c] is whose
 * section runs on CPU c; a move, or another section there, aborts it.
 *
 * malloc: pop off the row that the home word says, read inside.  A miss: home
 * of the CPU as looked up once, that home's ring, its arena, the other arena;
 * what is more than one goes into the row of its home, wherever the worker
 * runs by then.  free: push on the row of the object's home; a full row is
 * flushed into the ring of that home.  Objects 1 and 2 are of home 0 and leave
 * their slab together; with -DREHOME there is no object 2, and the page of
 * object 3 changes its arena.
 *
 * A monitor demands after every step that each object is in exactly one place
 * and in no row or ring of a home that is not its own.  Nobody waits, so that
 * anybody may stop for ever.  Rows hold one object, batches of a ring are one:
 * slot.pml and ring.pml have the rest.  README.md lists the mutants.
 */

byte at[3];			/* by worker, 1 and 2 */
byte sec[2];			/* by CPU */
byte word[2];			/* home words */
bool ready[2];			/* the slot is laid out */
byte cell[4];			/* the row of CPU c for home h: 2 * c + h */
bool open[4];
byte ring[2];			/* by home */
bool slab[4];			/* objects that are free */
byte tag[4];			/* their homes, in the page map */

/* ghost: in whose hand */
byte hand[4];

#define OBJECT(o) ((hand[o] != 0) + slab[o] + (ring[0] == o) + \
	(ring[1] == o) + (cell[0] == o) + (cell[1] == o) + (cell[2] == o) + \
	(cell[3] == o) == 1)
#define HOME(o, h) (!(o) || tag[o] == h)
#ifdef REHOME
#define PAIR	false
#else
#define PAIR	true
#endif
#define GOOD	(OBJECT(1) && (!PAIR || OBJECT(2)) && OBJECT(3) && \
	HOME(cell[0], 0) && HOME(cell[1], 1) && HOME(cell[2], 0) && \
	HOME(cell[3], 1) && HOME(ring[0], 0) && HOME(ring[1], 1))
#define GET(o)	assert(o && !hand[o]); hand[o] = me
#define PUT(o)	assert(hand[o] == me); hand[o] = 0
#define HELD	((hand[1] == me) + (hand[2] == me) + (hand[3] == me))

/* A section runs on CPU s and uses the row of CPU c. */
#ifdef SLOTBEFORE
#define WHERE	atomic { c = at[me] };
#define START	s = at[me]; sec[s] = me
#else
#define WHERE
#define START	s = at[me]; sec[s] = me; c = s
#endif
#define IN	sec[s] == me
#define OUT	sec[s] != me
#define OFF	s = 0; c = 0; x = 0
#define STOP	sec[s] = 0; OFF
#define ROW	(2 * c + h)

proctype worker(byte me)
{
	byte a;			/* malloc's result */
	byte b;			/* on its way to a row */
	byte s, c, h, x;
	bool fell;		/* the arena was not that of the home */

next:
	atomic { assert(HELD == (a != 0)); h = 0; c = 0; fell = 0;
		if
		:: !a -> goto malloc
		:: a -> b = a; a = 0; h = tag[b]; goto push	/* free */
		fi };

malloc:
#ifdef HOMEBEFORE
	atomic { h = word[at[me]] };
	atomic { START };
#else
	WHERE
	atomic { START; h = word[c] };
#endif
	if
	:: atomic { IN && open[ROW] && cell[ROW] -> x = cell[ROW] }
	:: atomic { IN && !(open[ROW] && cell[ROW]) -> STOP; goto miss }
	:: atomic { OUT -> OFF; goto next }
	fi;
	if
	:: atomic { IN -> cell[ROW] = 0; a = x; GET(a); assert(tag[a] == s);
		STOP; goto next }
	:: atomic { OUT -> OFF; goto next }
	fi;

	/* rows_alloc; rows_free with an object, h being its home */
miss:
	atomic { c = at[me]; if :: ready[c] -> goto laid :: !ready[c] fi };
#ifdef HOMELATE
	atomic { ready[c] = 1 };
	atomic { word[c] = c };
#elif defined(HOMEHERE)
	atomic { word[c] = at[me] };
	atomic { ready[c] = 1 };
#else
	atomic { word[c] = c };
	atomic { ready[c] = 1 };
#endif
laid:
	atomic {
		if :: !b -> h = c :: b fi;
		if
		:: !open[ROW] && at[me] == c -> s = c; sec[s] = me
		:: else -> goto opened
		fi };
	if
	:: atomic { IN -> open[ROW] = 1; STOP }
	:: atomic { OUT -> OFF }
	fi;
opened:
	atomic {
		if
		:: b -> goto push
		:: !b && ring[h] ->		/* eddy_returns_take */
			a = ring[h]; ring[h] = 0; GET(a);
			assert(tag[a] == h); goto next
		:: !b && !ring[h]
		fi };
	/* eddy_arena_refill: look, */
	atomic {
		if
		:: (slab[1] || slab[2]) && h == 0 -> x = 1
		:: slab[3] && tag[3] == h -> x = 3
		:: !((slab[1] || slab[2]) && h == 0) &&
		   !(slab[3] && tag[3] == h) ->
			fell = 1;
			if
			:: (slab[1] || slab[2]) && h == 1 -> x = 1
			:: slab[3] && tag[3] != h -> x = 3
			:: else -> goto next		/* NULL */
			fi
		fi };
#ifdef TAGEARLY
	atomic { if :: fell -> h = tag[x] :: !fell fi };
#endif
	/* take, */
	atomic {
		if
		:: x == 1 && slab[1] && slab[2] -> slab[1] = 0; slab[2] = 0;
			a = 1; b = 2; GET(1); GET(2)
		:: x == 1 && slab[1] && !slab[2] -> slab[1] = 0; a = 1; GET(1)
		:: x == 1 && !slab[1] && slab[2] -> slab[2] = 0; a = 2; GET(2)
		:: x == 3 && slab[3] -> slab[3] = 0; a = 3; GET(3)
		:: else -> x = 0; goto next
		fi;
		x = 0 };
	/* look again */
	atomic {
#if !defined(TAGEARLY) && !defined(FALLBACKROW)
		if :: fell -> h = tag[a] :: !fell fi;
#endif
#ifndef NOVALIDATE
		if
		:: !fell && tag[a] != h -> b = a; a = 0; goto give
		:: else
		fi;
#endif
		assert(fell || tag[a] == h);
		if
		:: b
		:: !b && fell -> b = a; a = 0
		:: !b && !fell -> goto next
		fi };

	/* stock, push: b goes into the row of home h */
push:
	WHERE
	atomic { START;
#ifdef REFILLHERE
		if :: a -> h = word[c] :: !a fi
#elif defined(FREEHERE)
		if :: !a -> h = word[c] :: a fi
#endif
	};
	if
	:: atomic { IN && open[ROW] && !cell[ROW] }
	:: atomic { IN && open[ROW] && cell[ROW] ->
		STOP; if :: !a -> goto flush :: a -> goto give fi }
	:: atomic { IN && !open[ROW] -> STOP; if :: goto miss :: goto give fi }
	:: atomic { OUT -> OFF; if :: goto push :: goto give fi }
	fi;
	if
	:: atomic { IN -> cell[ROW] = b; STOP; PUT(b); b = 0; goto next }
	:: atomic { OUT -> OFF; if :: goto push :: goto give fi }
	fi;
give:					/* eddy_arena_put */
	atomic { PUT(b); slab[b] = 1; b = 0; goto next };

	/* make_space, with b in hand */
flush:
	WHERE
	atomic { START };
	if
	:: atomic { IN && open[ROW] && cell[ROW] -> x = cell[ROW] }
	:: atomic { IN && !(open[ROW] && cell[ROW]) -> STOP; goto give }
	:: atomic { OUT -> OFF; goto give }
	fi;
	if
	:: atomic { IN -> cell[ROW] = 0; a = x; GET(a); STOP }
	:: atomic { OUT -> OFF; goto give }
	fi;
	atomic {			/* eddy_returns_put, or slabs */
#ifdef RINGMINE
		c = word[at[me]];
#else
		c = h;
#endif
		PUT(a);
		if
		:: ring[c] -> slab[a] = 1
		:: !ring[c] -> ring[c] = a
		fi;
		a = 0; goto push }
}

proctype mover()
{
	byte v;

	do
	:: atomic {
		if :: v = 1 :: v = 2 fi;
		if :: sec[at[v]] == v -> sec[at[v]] = 0 :: else fi;
		at[v] = 1 - at[v]; v = 0 }
	od
}

/* the page of object 3 dies in one arena and is born in another */
proctype retire(byte me)
{
	atomic { slab[3] -> slab[3] = 0; GET(3) };
	atomic { tag[3] = 1 - tag[3] };
	atomic { PUT(3); slab[3] = 1 }
}

/* never moves, as long as all is in its place */
proctype monitor()
{
	atomic { !GOOD -> assert(false) }
}

init {
	atomic {
		ready[0] = 1; open[0] = 1; open[1] = 1;
		at[2] = 1; tag[3] = 1;
		slab[1] = 1; slab[2] = PAIR; slab[3] = 1;
		run monitor();
		run worker(1); run worker(2); run mover();
#ifdef REHOME
		run retire(3)
#endif
	}
}
