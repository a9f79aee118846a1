/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib/ctl/mallctl.h"

#include <errno.h>
#include <string.h>

#include "eddy_config.h"
#include "lib/ctl/ctl_gen_names.h"
#include "lib/ctl/snapshot.h"
#include "lib/heap/region.h"

#ifdef EDDY_DEBUG
#	define EDDY_CTL_DEBUG true
#else
#	define EDDY_CTL_DEBUG false
#endif

enum access {
	CTL_R,
	CTL_W,
	CTL_RW,
	CTL_VOID,
};

/* A whole name. */
struct leaf {
	int64_t arg;
	uint8_t type;
	uint8_t access;
	uint8_t answer;
};

enum node_kind {
	NODE_NAMED,   /* what comes next is a word */
	NODE_INDEXED, /* a number, whatever: one node below */
	NODE_LEAF,
};

/* The beginning of some names. */
struct node {
	uint16_t name;  /* in text: the last word */
	uint16_t first; /* node below, the others follow */
	uint8_t n;      /* nodes below */
	uint8_t kind;
	uint16_t what; /* number of the leaf, of who knows valid numbers */
};

#include "lib/ctl/ctl_gen_names.inc"

/* ------------------------------------------------------------------ */
/* Names */

/* Node below for a word of n characters; its place there in *ret. */
static const struct node *
find_word(const struct node *node, const char *s, size_t n, size_t *ret)
{
	for (unsigned i = 0; i < node->n; i++) {
		const struct node *below = &nodes[node->first + i];
		const char *name = text + below->name;

		if (strncmp(name, s, n) == 0 && name[n] == '\0') {
			*ret = i;
			return below;
		}
	}
	return NULL;
}

/* A number as strtoumax(3) reads it: what follows is not looked at. */
static bool
read_number(const char *s, size_t *ret)
{
	size_t v = 0;
	bool negative;
	bool any = false;

	while (*s == ' ' || (*s >= '\t' && *s <= '\r'))
		s++;
	negative = *s == '-';
	if (*s == '-' || *s == '+')
		s++;
	for (; *s >= '0' && *s <= '9'; s++) {
		size_t digit = (size_t)(*s - '0');

		any = true;
		if (v > (SIZE_MAX - digit) / 10)
			return false;
		v = v * 10 + digit;
	}
	*ret = v;
	return any && !(negative && v != 0);
}

/* One step down, by a number or by a place among words. */
static const struct node *
step(struct eddy_heap *h, const struct node *node, size_t i)
{
	if (node->kind == NODE_NAMED)
		return i < node->n ? &nodes[node->first + i] : NULL;
	if (node->kind == NODE_INDEXED && is_index(node->what, h, i))
		return &nodes[node->first];
	return NULL;
}

/*
 * Follows a name for *len steps at most, which become mib and *len.  NULL:
 * there is none.
 */
static const struct node *
find_name(struct eddy_heap *h, const char *name, size_t *mib, size_t *len)
{
	const struct node *node = &nodes[0];
	size_t n = 0;

	while (n < *len) {
		size_t word = strcspn(name, ".");
		const struct node *below;

		if (node->kind != NODE_INDEXED)
			below = find_word(node, name, word, &mib[n]);
		else
			below = read_number(name, &mib[n])
				    ? step(h, node, mib[n])
				    : NULL;
		if (below == NULL)
			return NULL;
		node = below;
		n++;
		name += word;
		if (*name == '\0')
			break;
		if (node->kind == NODE_LEAF)
			return NULL;
		name++;
	}
	*len = n;
	return node;
}

static const struct node *
find_mib(struct eddy_heap *h, const size_t *mib, size_t len)
{
	const struct node *node = &nodes[0];

	for (size_t i = 0; i < len && node != NULL; i++)
		node = step(h, node, mib[i]);
	return node;
}

/* ------------------------------------------------------------------ */
/* Values */

static size_t
size_of(unsigned type)
{
	switch (type) {
	case EDDY_CTL_BOOL:
		return sizeof(bool);
	case EDDY_CTL_UNSIGNED:
	case EDDY_CTL_UINT32:
		return sizeof(uint32_t);
	default:
		return sizeof(uint64_t);
	}
}

/* The caller's value may lie anywhere. */
static uint64_t
load(const void *p, unsigned type)
{
	union {
		unsigned char b;
		uint32_t u;
		uint64_t v;
	} x;

	memcpy(&x, p, size_of(type));
	return type == EDDY_CTL_BOOL          ? x.b != 0
	       : size_of(type) == sizeof(x.u) ? x.u
					      : x.v;
}

int
eddy_ctl_give(struct eddy_ctl *c, const void *value, size_t n)
{
	if (c->oldp == NULL || c->oldlenp == NULL)
		return 0;
	if (*c->oldlenp == n) {
		memcpy(c->oldp, value, n);
		return 0;
	}
	if (n > *c->oldlenp)
		n = *c->oldlenp;
	memcpy(c->oldp, value, n);
	*c->oldlenp = n;
	return EINVAL;
}

static int
give(struct eddy_ctl *c)
{
	bool b = c->out != 0;
	uint32_t u = (uint32_t)c->out;

	switch (size_of(c->type)) {
	case sizeof(bool):
		return eddy_ctl_give(c, &b, sizeof(b));
	case sizeof(uint32_t):
		return eddy_ctl_give(c, &u, sizeof(u));
	default:
		return eddy_ctl_give(c, &c->out, sizeof(c->out));
	}
}

/* ------------------------------------------------------------------ */
/* Calls */

static bool
is_permitted(const struct eddy_ctl *c, unsigned access)
{
	bool reads = c->oldp != NULL || c->oldlenp != NULL;
	bool writes = c->newp != NULL || c->newlen != 0;

	switch (access) {
	case CTL_R:
		return !writes;
	case CTL_W:
		return !reads;
	case CTL_VOID:
		return !reads && !writes;
	default:
		return true;
	}
}

/* Whether the caller expects a value of another length. */
static bool
is_misread(const struct eddy_ctl *c)
{
	return c->oldp != NULL && c->oldlenp != NULL &&
	       *c->oldlenp != size_of(c->type);
}

static int
call(struct eddy_ctl *c, const struct leaf *leaf)
{
	bool writes = c->newp != NULL && leaf->type != EDDY_CTL_VOID;
	int err;

	if (!is_permitted(c, leaf->access))
		return EPERM;
	c->type = (enum eddy_ctl_type)leaf->type;
	c->arg = leaf->arg;
	if (leaf->type == EDDY_CTL_OTHER || leaf->type == EDDY_CTL_VOID)
		return answer(leaf->answer, c);
	if (writes && c->newlen != size_of(leaf->type))
		return EINVAL;
	/* Who cannot take the old value does not set a new one. */
	c->writes = writes && !is_misread(c);
	if (c->writes)
		c->in = load(c->newp, leaf->type);
	err = answer(leaf->answer, c);
	if (err != 0 || leaf->access == CTL_W)
		return err;
	return give(c);
}

/* The numbers among what leads to a leaf. */
static void
take_numbers(struct eddy_ctl *c, const size_t *mib, size_t len)
{
	const struct node *node = &nodes[0];
	unsigned n = 0;

	for (size_t i = 0; i < len; i++) {
		bool is_number = node->kind == NODE_INDEXED;

		if (is_number && n++ == 0)
			c->i = mib[i];
		else if (is_number)
			c->j = mib[i];
		node = &nodes[node->first + (is_number ? 0 : mib[i])];
	}
}

static int
call_node(
    struct eddy_ctl *c, const struct node *node, const size_t *mib, size_t len)
{
	/* The name is none, or not a whole one. */
	if (node == NULL || node->kind != NODE_LEAF)
		return ENOENT;
	take_numbers(c, mib, len);
	return call(c, &leaves[node->what]);
}

int
eddy_mallctl(const char *name, void *oldp, size_t *oldlenp, const void *newp,
    size_t newlen)
{
	struct eddy_ctl c = {.h = eddy_heap(),
	    .oldp = oldp,
	    .oldlenp = oldlenp,
	    .newp = newp,
	    .newlen = newlen};
	size_t mib[CTL_DEPTH];
	size_t len = CTL_DEPTH;
	const struct node *node;

	if (c.h == NULL)
		return EAGAIN;
	node = find_name(c.h, name, mib, &len);
	return call_node(&c, node, mib, len);
}

int
eddy_mallctl_mib(const char *name, size_t *mibp, size_t *miblenp)
{
	struct eddy_heap *h = eddy_heap();
	size_t mib[CTL_DEPTH];
	size_t len = *miblenp < CTL_DEPTH ? *miblenp : CTL_DEPTH;

	if (h == NULL)
		return EAGAIN;
	if (*name == '\0' || find_name(h, name, mib, &len) == NULL)
		return ENOENT;
	memcpy(mibp, mib, len * sizeof(*mib));
	*miblenp = len;
	return 0;
}

int
eddy_mallctl_by_mib(const size_t *mib, size_t miblen, void *oldp,
    size_t *oldlenp, const void *newp, size_t newlen)
{
	struct eddy_ctl c = {.h = eddy_heap(),
	    .oldp = oldp,
	    .oldlenp = oldlenp,
	    .newp = newp,
	    .newlen = newlen};

	if (c.h == NULL)
		return EAGAIN;
	return call_node(&c, find_mib(c.h, mib, miblen), mib, miblen);
}

int
eddy_mallctl_look(struct eddy_heap *h, const char *name, struct eddy_ctl *ret)
{
	size_t mib[CTL_DEPTH];
	size_t len = CTL_DEPTH;
	const struct node *node = find_name(h, name, mib, &len);
	const struct leaf *leaf;

	if (node == NULL || node->kind != NODE_LEAF)
		return ENOENT;
	leaf = &leaves[node->what];
	if (leaf->type == EDDY_CTL_OTHER || leaf->type == EDDY_CTL_VOID ||
	    leaf->access == CTL_W)
		return EPERM;
	*ret = (struct eddy_ctl){
	    .h = h, .type = (enum eddy_ctl_type)leaf->type, .arg = leaf->arg};
	take_numbers(ret, mib, len);
	return answer(leaf->answer, ret);
}

int
eddy_mallctl_type(const char *name, enum eddy_ctl_type *ret)
{
	struct eddy_heap *h = eddy_heap();
	size_t mib[CTL_DEPTH];
	size_t len = CTL_DEPTH;
	const struct node *node =
	    h != NULL ? find_name(h, name, mib, &len) : NULL;

	if (node == NULL || node->kind != NODE_LEAF)
		return ENOENT;
	*ret = (enum eddy_ctl_type)leaves[node->what].type;
	return 0;
}

/* ------------------------------------------------------------------ */
/* Answers that know nothing but the tables. */

int
eddy_ctl_fixed(struct eddy_ctl *c)
{
	c->out = (uint64_t)c->arg;
	return 0;
}

int
eddy_ctl_word(struct eddy_ctl *c)
{
	c->out = eddy_ctl_pointer(text + c->arg);
	return 0;
}

int
eddy_ctl_absent(struct eddy_ctl *c)
{
	(void)c;
	return ENOENT;
}

int
eddy_ctl_nothing(struct eddy_ctl *c)
{
	(void)c;
	return 0;
}

int
eddy_ctl_opt(struct eddy_ctl *c)
{
	const void *p = (const char *)&c->h->opts + c->arg;

	c->out =
	    c->type == EDDY_CTL_STRING ? eddy_ctl_pointer(p) : load(p, c->type);
	return 0;
}

/* Words of an option stand side by side in their order. */
int
eddy_ctl_opt_word(struct eddy_ctl *c)
{
	const char *p = (const char *)&c->h->opts + (c->arg >> 16);
	const char *s = text + (c->arg & 0xffff);
	unsigned n;

	memcpy(&n, p, sizeof(n));
	for (; n > 0; n--)
		s += strlen(s) + 1;
	c->out = eddy_ctl_pointer(s);
	return 0;
}
