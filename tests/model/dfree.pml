/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * dfree.pml - a faulty program frees an object twice, at the same time.
 *
 * One word of two free bits.  Object 0 is freed by two threads, object 1 by
 * an innocent one; a fourth refills or makes the page a slab again.  The
 * second free is reported, or the object had been handed out again in
 * between, or its bit is there for the next birth to find.  The innocent
 * thread is never accused.
 */
bool pagefree, slab = 1, idx;
byte W;
byte reports, over;
bool reused;

inline look_and_retire()
{
	if
	:: atomic { W == 3 -> W = 0 };
	   idx = 0;
	   slab = 0;
	   pagefree = 1
	:: atomic { W != 3 -> skip }
	fi
}

proctype freer(byte m; bool innocent)
{
	byte old;

	if				/* the tag */
	:: atomic { !slab -> assert(!innocent); reports++; goto out }
	:: atomic { slab -> skip }
	fi;
#if defined(LOOKTHENOR)
	old = W;
	atomic { W = W | m };
#elif defined(TAGALONE)
	atomic { W = W | m };
#else
	atomic { old = W; W = W | m };
#endif
	if
	:: atomic { (old & m) -> assert(!innocent); reports++; goto out }
	:: atomic { !(old & m) -> skip }
	fi;
	idx = 1;
	if
	:: (old | m) == 3 -> look_and_retire()
	:: (old | m) != 3
	fi;
out:
	atomic { old = 0; over++ }
}

proctype other()
{
	byte got, given;

	if
	:: skip
	:: atomic { got = W; W = 0 };	/* refill */
	   if
	   :: got == 0
	   :: atomic { got && slab -> reused = reused || (got & 1) }
	   :: atomic { got && !slab -> reports++ }
	   fi
	:: atomic { pagefree -> pagefree = 0 };		/* birth */
	   atomic { slab = 1;		/* and hand out one of the two */
		if :: given = 1 :: given = 2 fi;
		reused = reused || (given & 1) };
#ifdef BLINDBIRTH
	   atomic { W = 3 & ~given };
#else
	   atomic { got = W; W = 3 & ~given };
	   if :: got -> reports++ :: !got fi;
#endif
	   idx = 1
	fi;
	atomic { got = 0; given = 0; over++ }
}

init {
	atomic {
		run freer(1, 0); run freer(1, 0); run freer(2, 1);
		run other()
	}
	atomic {
		if
		:: over == 4
		:: timeout	/* `other` waits for a page that never comes */
		fi;
		assert(over >= 3);
		assert(reports || reused || (!slab && (W & 1)))
	}
}
