/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bind.pml - whose node a segment is bound to, while arenas move.
 *
 * Arena 1 is of the program and moves between nodes, arena 2 never is bound.
 * A segment goes from owner to owner.  Claimers and movers tell the kernel a
 * policy and write down what they told; a mapper, in a segment that is his,
 * maps a part anew, which starts without any.
 *
 * At rest the kernel's policy, and the part's, is what the owner's node asks
 * for, and what is written down is that, or unknown.  README.md lists the
 * mutants.
 */
#ifndef MOVES
#define MOVES	1		/* of each mover */
#endif
#ifndef MOVERS
#define MOVERS	2
#endif
#ifndef CLAIMS
#define CLAIMS	1		/* for arena 1 */
#endif
#ifndef OTHERS
#define OTHERS	1		/* for arena 2 */
#endif
#define NOT	0
#define UNKNOWN	3

byte node[3];			/* by arena; node[2] stays NOT */
byte owner;			/* of the segment, 0: none */
byte bound, tag;		/* one word */
bool ready;			/* the part is mapped */

/* the kernel's */
byte policy, part;

byte busy;			/* ghost: processes that have not ended */

#ifdef NOTAG
#define BUMP
#else
#define BUMP	tag++
#endif

proctype claimer(byte a)
{
	byte want, told, b, t, k = (a == 1 -> CLAIMS : OTHERS);

next:
	atomic { want = 0; told = 0; b = 0; t = 0;
		if
		:: busy--; goto out
		:: k && !owner -> k--
#ifndef OWNERLATE
			; owner = a
#endif
		fi };
	/* eddy_bind_segment */
again:
#ifdef BOUNDFIRST
	atomic { b = bound; t = tag };
	atomic { want = node[a]; if :: b == want -> goto mine :: else fi };
#else
	atomic { want = node[a] };
	atomic { b = bound; t = tag; if :: b == want -> goto mine :: else fi };
#endif
	atomic { policy = want };
	atomic { if :: ready -> part = want :: else fi };
	atomic {
		if
#ifdef BLINDCLAIM
		:: true -> bound = want
#elif defined(VALUEONLY)
		:: bound == b -> bound = want
#else
		:: bound == b && tag == t -> bound = want
#endif
		:: else
		fi;
#ifdef ONCE
		goto mine
#else
		goto again
#endif
	};
mine:
#ifdef OWNERLATE
	atomic { if :: !owner -> owner = a :: else -> goto next fi };
#endif
	/* eddy_bind_chunks, eddy_bind_again */
	if
	:: atomic { true -> part = NOT; ready = 1; want = NOT; b = 0; t = 0 };
map:
	   atomic { told = want; want = node[a] };
#ifdef MAPONCE
	   atomic { part = want };
#else
	   atomic { if :: want != told -> part = want :: else fi };
#endif
#ifndef MAPQUIET
	   atomic {
		if
		:: bound != want && bound != UNKNOWN -> bound = UNKNOWN; BUMP
		:: else
		fi };
#endif
#ifndef MAPONCE
	   atomic { if :: want != told -> goto map :: else fi }
#endif
	:: true
	fi;
	atomic { if :: owner = 0 :: skip fi; want = 0; told = 0; b = 0; t = 0;
		goto next };
out:
	skip
}

proctype mover()
{
	byte want, o, k = MOVES;

next:
	atomic { want = 0; o = 0;
		if
		:: !k -> busy--; goto out
		:: k -> k--;
			if :: node[1] = 1 :: node[1] = 2 fi
		fi };
	atomic { if :: owner != 1 -> goto next :: else -> o = 1 fi };
	/* move_segment */
again:
	atomic { want = node[o] };
	atomic { if :: want == NOT && bound == NOT -> goto look :: else fi };
#ifdef UNKNOWNFIRST
	atomic { bound = UNKNOWN; BUMP };
#endif
	atomic { policy = want };
	atomic { if :: ready -> part = want :: else fi };
#ifdef SAYWHAT				/* what was told, not unknown */
	atomic { bound = want; BUMP };
#elif !defined(UNKNOWNFIRST)
	atomic { bound = UNKNOWN; BUMP };
#endif
look:
#ifdef NOLOOK
	goto next;
#elif defined(OWNERONLY)
	atomic { if :: !owner || owner == o -> goto next :: else -> o = owner; goto again fi };
#elif defined(NODEONLY)
	atomic { if :: node[o] == want -> goto next :: else -> goto again fi };
#else
	atomic { if :: !owner -> goto next :: owner && owner != o -> o = owner; goto again :: else fi };
	atomic { if :: node[o] == want -> goto next :: else -> goto again fi };
#endif
out:
	skip
}

init {
	atomic {
		node[1] = 1; busy = 2 + MOVERS;
		run claimer(1); run claimer(2); run mover();
#if MOVERS > 1
		run mover()
#endif
	}
	atomic { !busy ->
		assert(bound == UNKNOWN || bound == policy);
		assert(!owner || policy == node[owner]);
		assert(!owner || !ready || part == node[owner])
	}
}
