/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * init.pml - the first call, memory that becomes accessible, the tag limit.
 *
 * The heap is built privately and published by one compare-and-swap; who
 * comes second unmaps what he built.  Two segments of two chunks: who claims
 * a segment makes its tags readable from the old limit up and raises the
 * limit, then keeps a chunk and opens the segment, or keeps it all (a giant).
 * A chunk in hand is mapped, then marked ready.  Under a limit on addresses
 * nothing is reserved: what is mapped twice is refused as somebody else's,
 * and a giant that is refused memory unmaps its segments.
 * -DOPENED: all that has happened to one segment.
 * Anybody may look up any address below the limit at any time.
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
#define SEG(c)	((c) / 2)

byte heap;			/* worker + 1 whose copy is published */
bool mapped[NP], built[NP];	/* private copies */
bool segment[2] = 1;		/* free */
bool F[4], ready[4];		/* chunks: free, marked */
bool open[4];			/* memory is there */
bool readable[2];		/* tags and descriptors of the segment */
byte limit;			/* segments below have readable tags */
byte user[4], holder[2];	/* ghosts: worker + 1 with it in hand */
bool dead[NP], ended[NP];

proctype worker(byte me, n)
{
	byte c, l, h;
	bool giant, only;

	atomic { LIVE; h = heap }
	if
	:: atomic { LIVE && h } ;
	:: atomic { LIVE && !h -> mapped[me] = 1 };
#ifdef PUBLISHFIRST
	   atomic { LIVE;
		if
		:: !heap -> heap = me + 1; h = me + 1
		:: heap -> h = heap; mapped[me] = 0
		fi };
	   atomic { LIVE; built[me] = 1 };
#else
	   atomic { LIVE; built[me] = 1 };
#ifdef BLINDPUBLISH
	   atomic { LIVE; heap = me + 1; h = me + 1 };
#else
	   atomic { LIVE;
		if
		:: !heap -> heap = me + 1; h = me + 1
		:: heap -> h = heap; goto LOSE
		fi };
#endif
#endif
	   atomic { LIVE; goto next };
LOSE:
#ifdef KEEP
	   atomic { LIVE; skip };
#elif defined(UNMAPHEAP)
	   atomic { LIVE; mapped[h - 1] = 0 };
#else
	   atomic { LIVE; mapped[me] = 0; built[me] = 0 };
#endif
	fi;

next:
	atomic { LIVE; c = 0; l = 0; giant = 0; only = 0;
		assert(h == heap && mapped[h - 1] && built[h - 1]);
		if
		:: n == 0 -> h = 0; ended[me] = 1; goto out
		:: n > 0 -> n--; goto CHUNK
		:: n > 0 -> n--; giant = 1; goto SEGMENT
		fi }

CHUNK:
	atomic { LIVE;			/* any free one */
		if
		:: F[0] -> c = 0 :: F[1] -> c = 1
		:: F[2] -> c = 2 :: F[3] -> c = 3
		:: !F[0] && !F[1] && !F[2] && !F[3] -> goto SEGMENT
		fi;
		assert(!user[c] && !holder[SEG(c)]);
		F[c] = 0; user[c] = me + 1; goto READY }

	/* claim_segments */
SEGMENT:
	atomic { LIVE;
		if
		:: segment[0] -> c = 0 :: segment[1] -> c = 2
		:: !segment[0] && !segment[1] -> goto next
		fi;
		assert(!holder[SEG(c)] && !F[c] && !F[c + 1]);
		assert(!user[c] && !user[c + 1]);
		segment[SEG(c)] = 0; holder[SEG(c)] = me + 1 }
	/* raise_limit */
	atomic { LIVE; l = limit; if :: l > SEG(c) -> goto OPEN :: else fi }
#ifdef LIMITFIRST
	atomic { LIVE;
		if :: limit <= SEG(c) -> limit = SEG(c) + 1 :: else fi }
#endif
#ifndef HOLE
	if
	:: atomic { LIVE && l == 0 -> readable[0] = 1 }
	:: atomic { LIVE && l > 0 }
	fi;
#endif
	if
	:: atomic { LIVE && c == 2 -> readable[1] = 1 }
	:: atomic { LIVE && c == 0 -> readable[0] = 1 }
	:: atomic { LIVE -> goto PUTSEGMENT }	/* refused: no memory */
	fi;
#ifdef LIMITSTORE
	atomic { LIVE; limit = SEG(c) + 1 }
#elif !defined(LIMITFIRST)
RAISE:
	atomic { LIVE;			/* never down */
		if
		:: limit == l -> limit = SEG(c) + 1
		:: limit != l && limit <= SEG(c) -> l = limit; goto RAISE
		:: limit != l && limit > SEG(c)
		fi }
#endif
OPEN:
	atomic { LIVE; l = 0; if :: giant -> goto READY :: else fi;
		holder[SEG(c)] = 0; user[c] = me + 1; F[c + 1] = 1 }

	/* make_ready: of a giant all chunks, with the first unready one */
READY:
	atomic { LIVE;
		if
		:: !ready[c] -> skip
		:: ready[c] && giant && c % 2 == 0 -> c++; goto READY
		:: ready[c] && (!giant || c % 2 == 1) -> goto USE
		fi }
#ifdef READYFIRST
	atomic { LIVE; ready[c] = 1 }
#endif
	if
	:: atomic { LIVE -> assert(!open[c]); open[c] = 1 }
	:: atomic { LIVE -> goto REFUSED }
	fi;
#ifdef MAPMORE			/* its neighbour, too */
	atomic { LIVE; if :: !ready[c ^ 1] -> open[c ^ 1] = 1 :: else fi }
	atomic { LIVE; ready[c ^ 1] = 1 }
#endif
	atomic { LIVE; ready[c] = 1; if :: giant -> goto READY :: else fi }
USE:
	atomic { LIVE;
		assert(giant || (user[c] == me + 1 && open[c]));
		assert(!giant || (holder[SEG(c)] == me + 1 &&
		    open[0 + c / 2 * 2] && open[1 + c / 2 * 2])) }
	/* an object in it is freed: the tag is looked up */
	atomic { LIVE; assert(limit > SEG(c) && readable[SEG(c)]);
		if :: giant -> goto PUTSEGMENT :: else fi }

	/* eddy_chunks_put; an empty segment retires or is kept */
GIVE:
	atomic { LIVE; assert(!F[c]); user[c] = 0; F[c] = 1; c = c / 2 * 2;
		if :: only :: !only -> goto next :: F[0 + c] && F[1 + c] fi }
	if
	:: atomic { LIVE && only -> goto ONLYREADY }
	:: atomic { LIVE && !only && F[c] -> F[c] = 0; user[c] = me + 1 }
	:: atomic { LIVE && !only && !F[c] -> goto next }
	fi;
	atomic { LIVE;
		if
		:: F[c + 1] -> F[c + 1] = 0; user[c] = 0;
			holder[SEG(c)] = me + 1
		:: else -> user[c] = 0; F[c] = 1; goto next
		fi }
PUTSEGMENT:
	atomic { LIVE; holder[SEG(c)] = 0; segment[SEG(c)] = 1; goto next }

	/* no memory: a chunk is put and one that is ready searched */
REFUSED:
	if
	:: atomic { LIVE && giant && c % 2 == 1 -> c = c - 1; goto UNMAP }
	:: atomic { LIVE && giant && c % 2 == 0 -> goto UNMAP }
	:: atomic { LIVE && !giant && !only -> only = 1; goto GIVE }
	fi;
ONLYREADY:
	atomic { LIVE; only = 0;
		if
		:: F[0] && ready[0] -> c = 0
		:: F[1] && ready[1] -> c = 1
		:: F[2] && ready[2] -> c = 2
		:: F[3] && ready[3] -> c = 3
		:: else -> goto next
		fi }
	atomic { LIVE;
		if
		:: F[c] -> F[c] = 0; user[c] = me + 1
		:: else -> goto next
		fi }
#ifndef READYSTALE
	atomic { LIVE; if :: ready[c] -> skip :: else -> goto GIVE fi }
#endif
	goto USE;

	/* unmap_segment */
UNMAP:
#ifdef UNMAPLATE		/* when it is anybody's */
	atomic { LIVE; holder[SEG(c)] = 0; segment[SEG(c)] = 1 }
#endif
	atomic { LIVE; if :: ready[c] -> open[c] = 0 :: else fi }
	atomic { LIVE; if :: ready[c + 1] -> open[c + 1] = 0 :: else fi }
#ifndef READYKEPT
	atomic { LIVE; ready[c] = 0 }
	atomic { LIVE; ready[c + 1] = 0 }
#endif
#ifdef UNMAPLATE
	goto next;
#else
	goto PUTSEGMENT;
#endif
out:
	skip
}

proctype reader()		/* free() of whatever address */
{
	byte l;

	atomic { l = limit };
	atomic { assert(l == 0 || readable[0]);
		assert(l < 2 || readable[1]) };
	l = 0
}

proctype killer()
{
	byte v;
	if
	:: skip
	:: atomic { select (v : 0 .. NP - 1);
		if :: !ended[v] -> dead[v] = 1 :: else fi; v = 0 }
	fi
}

init {
	byte i; bool death;

	atomic {
#ifdef OPENED			/* segment 0, one of its chunks ready */
		heap = 1; mapped[0] = 1; built[0] = 1; readable[0] = 1;
		limit = 1; segment[0] = 0; F[0] = 1; F[1] = 1;
		open[0] = 1; ready[0] = 1;
#endif
		for (i : 0 .. NP - 1) {
			if
			:: i == NP - 1 -> run worker(i, LAST)
			:: else -> run worker(i, OPS)
			fi
		};
		run reader(); run killer(); i = 0
	}
	atomic {
		if
		:: (ended[0] || dead[0]) && (ended[1] || dead[1]) &&
		   (ended[NP - 1] || dead[NP - 1]) -> skip
		:: timeout -> assert(false)
		fi;
		for (i : 0 .. NP - 1) {		/* no copy is left behind */
			assert(!mapped[i] || heap == i + 1 || dead[i])
		};
		for (i : 0 .. 1) {
			assert(limit <= i || readable[i]);
			assert(!holder[i] ||
			    (dead[holder[i] - 1] && !segment[i]))
		};
		for (i : 0 .. 3) {	/* each is in one place */
			assert(!user[i] || (dead[user[i] - 1] && !F[i]));
			assert(F[i] + (user[i] > 0) + segment[SEG(i)] +
			    (holder[SEG(i)] > 0) == 1);
			assert(open[i] == ready[i] ||
			    user[i] || holder[SEG(i)])
		}
	}
}
