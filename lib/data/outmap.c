/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib/data/outmap.h"

#include "lib/os/os.h"

#define LEAF       ((size_t)1 << EDDY_OUT_LG_LEAF)
#define LEAF_BYTES (LEAF * sizeof(uint32_t))

static bool
is_address(const void *p)
{
	return (uintptr_t)p >> EDDY_OUT_LG_ALL == 0;
}

static size_t
unit_of(const void *p)
{
	return (uintptr_t)p >> EDDY_OUT_LG_UNIT;
}

/* Where an address has its number; NULL: no leaf is there. */
static _Atomic uint32_t *
word_at(const struct eddy_outmap *m, const void *p)
{
	/* OUT-A1: the leaf is accessible. */
	_Atomic uint32_t *leaf = eddy_load_acquire(&m->leaf[unit_of(p) / LEAF]);

	return leaf != NULL ? leaf + unit_of(p) % LEAF : NULL;
}

uint32_t
eddy_outmap_find(const struct eddy_outmap *m, const void *p)
{
	_Atomic uint32_t *w = is_address(p) ? word_at(m, p) : NULL;

	/* relaxed: a live block keeps it, and was handed over properly. */
	return w != NULL ? eddy_load_relaxed(w) - 1 : EDDY_OUT_NONE;
}

/* Makes the leaf for p, or finds it made; false: no memory. */
static bool
make_leaf(struct eddy_outmap *m, const void *p)
{
	_Atomic uint32_t *fresh = eddy_os_reserve(LEAF_BYTES);
	_Atomic uint32_t *seen = NULL;

	if (fresh == NULL)
		return false;
	/* OUT-R1: it is accessible.  OUT-A1: or another's. */
	if (eddy_os_commit((void *)(uintptr_t)fresh, LEAF_BYTES) == 0 &&
	    eddy_cas_acq_rel(&m->leaf[unit_of(p) / LEAF], &seen, fresh))
		return true;
	eddy_os_unmap((void *)(uintptr_t)fresh, LEAF_BYTES);
	return seen != NULL;
}

bool
eddy_outmap_put(struct eddy_outmap *m, const void *p, uint32_t number)
{
	uint32_t none = 0;

	if (!is_address(p) || (word_at(m, p) == NULL && !make_leaf(m, p)))
		return false;
	/* relaxed: published with the block that will lie there. */
	return eddy_cas_relaxed(word_at(m, p), &none, number + 1);
}

void
eddy_outmap_drop(struct eddy_outmap *m, const void *p)
{
	/* relaxed: nothing lives there. */
	eddy_store_relaxed(word_at(m, p), 0);
}
