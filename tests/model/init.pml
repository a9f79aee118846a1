/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * init.pml - the first call, memory that becomes readable, the tag limit.
 *
 * The heap is built privately and published by one compare-and-swap; who
 * comes second unmaps what he built.  A chunk is claimed, then made
 * accessible, then marked committed; its tags are made readable from the old
 * limit up, then the limit is raised, by several threads at once.  Anybody
 * may look up any address below the limit at any time.
 */
#ifndef NP
#define NP	2
#endif
#ifndef OPS
#define OPS	1
#endif
#define CHUNKS	2
#define LIVE	!dead[me]

byte heap;			/* worker + 1 whose copy is published */
bool mapped[NP], built[NP];	/* private copies */
bool freebit[CHUNKS] = 1, open[CHUNKS], committed[CHUNKS];
bool readable[CHUNKS];		/* the tags of the chunk */
byte limit;			/* chunks below have readable tags */
byte user[CHUNKS];		/* ghost */
bool dead[NP], ended[NP];

proctype worker(byte me, n)
{
	byte c, l, h;

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
	atomic { LIVE; c = 0; l = 0;
		assert(h == heap && mapped[h - 1] && built[h - 1]);
		if
		:: n == 0 -> h = 0; ended[me] = 1; goto out
		:: n > 0 -> n--
		fi }
	atomic { LIVE;			/* claim a chunk, any */
		if
		:: freebit[0] -> c = 0; freebit[0] = 0
		:: freebit[1] -> c = 1; freebit[1] = 0
		:: !freebit[0] && !freebit[1] -> goto next
		fi;
		assert(!user[c]); user[c] = me + 1 }
#ifdef COMMITFIRST
	if
	:: atomic { LIVE && !committed[c] -> committed[c] = 1 };
	   atomic { LIVE; skip };
	   if
	   :: atomic { LIVE -> open[c] = 1 }
	   :: atomic { LIVE -> goto GIVE }	/* refused: no memory */
	   fi
	:: atomic { LIVE && committed[c] }
	fi;
#else
	if
	:: atomic { LIVE && !committed[c] };
	   if
	   :: atomic { LIVE -> open[c] = 1 }
	   :: atomic { LIVE -> goto GIVE }	/* refused: no memory */
	   fi;
	   atomic { LIVE; committed[c] = 1 }
	:: atomic { LIVE && committed[c] }
	fi;
#endif
RAISE:
	atomic { LIVE; l = limit; if :: l > c -> goto USE :: else fi }
#ifdef LIMITFIRST
	atomic { LIVE;
		if :: limit == l -> limit = c + 1 :: else -> goto RAISE fi }
#endif
#ifdef HOLE
	atomic { LIVE; readable[c] = 1 }
#else
	if
	:: atomic { LIVE && l == 0 -> readable[0] = 1 }
	:: atomic { LIVE && l > 0 }
	fi;
	if
	:: atomic { LIVE && c == 1 -> readable[1] = 1 }
	:: atomic { LIVE && c == 0 }
	fi;
#endif
#if defined(LIMITSTORE)
	atomic { LIVE; limit = c + 1 }
#elif !defined(LIMITFIRST)
	atomic { LIVE;			/* never down */
		if :: limit == l -> limit = c + 1 :: else -> goto RAISE fi }
#endif
USE:
	atomic { LIVE; assert(user[c] == me + 1 && open[c]) }
	/* its object is freed: the tag is looked up */
	atomic { LIVE; assert(limit > c && readable[c]) }
GIVE:
	atomic { LIVE; user[c] = 0; freebit[c] = 1; goto next }
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
		for (i : 0 .. NP - 1) { run worker(i, OPS) };
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
		for (i : 0 .. CHUNKS - 1) {	/* nor a chunk lost */
			assert(freebit[i] || (user[i] && dead[user[i] - 1]));
			assert(!committed[i] || open[i]);
			assert(limit <= i || readable[i])
		}
	}
}
