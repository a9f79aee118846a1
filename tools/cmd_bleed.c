/* SPDX-License-Identifier: BSD-2-Clause */
/* cmd_bleed.c - who frees what others allocate. */
#include <stdlib.h>
#include <string.h>

#include "tools/eddyctl.h"

#define MAX_HOMES 8 /* columns */

static json_int_t
number(const json_t *of, const char *key)
{
	return json_integer_value(json_object_get(of, key));
}

/* The part of the statistics that has flows; NULL, complained about. */
static json_t *
read_flows(struct target *t, int *status)
{
	char *text;
	json_error_t e;
	json_t *root;
	json_t *flows;
	int err;

	*status = ask(t, "flows", &text, &err);
	if (*status == REFUSED)
		complain("%s", why_refused(err));
	if (*status != DONE)
		return NULL;
	root = json_loads(text, 0, &e);
	free(text);
	flows = json_object_get(json_object_get(root, "eddy"), "flows");
	json_incref(flows);
	json_decref(root);
	if (flows == NULL) {
		complain("%s has told of no flows", t->comm);
		*status = SILENT;
	}
	return flows;
}

static void
show_words(const json_t *flows)
{
	json_t *worst = json_object_get(flows, "worst");

	if (!json_is_true(json_object_get(flows, "bleeds")))
		(void)printf("nothing bleeds\n");
	else
		(void)printf("bleeding, the worst classes first\n");
	for (size_t i = 0; i < json_array_size(worst); i++) {
		const char *words = json_string_value(
		    json_object_get(json_array_get(worst, i), "words"));

		(void)fputs("  ", stdout);
		put_clean(stdout, words != NULL ? words : "");
		(void)fputs("\n", stdout);
	}
}

/* Objects that CPUs have sent, by the home that they went to. */
static void
show_matrix(const json_t *flows)
{
	json_t *cpus = json_object_get(flows, "cpus");
	size_t n_homes = 0;

	if (json_array_size(cpus) == 0)
		return;
	n_homes = json_array_size(
	    json_object_get(json_array_get(cpus, 0), "to_home"));
	(void)printf("objects sent\n%8s %6s", "cpu", "home");
	for (size_t k = 0; k < n_homes && k < MAX_HOMES; k++)
		(void)printf("  to home %-2zu", k);
	(void)printf("%s\n", n_homes > MAX_HOMES ? "  ..." : "");
	for (size_t i = 0; i < json_array_size(cpus); i++) {
		json_t *cpu = json_array_get(cpus, i);
		json_t *to = json_object_get(cpu, "to_home");

		(void)printf(
		    "%8lld %6lld", number(cpu, "cpu"), number(cpu, "home"));
		for (size_t k = 0; k < n_homes && k < MAX_HOMES; k++)
			(void)printf(" %11lld",
			    json_integer_value(json_array_get(to, k)));
		(void)printf("\n");
	}
}

static void
show_classes(const json_t *flows)
{
	json_t *cpus = json_object_get(flows, "cpus");
	bool any = false;

	for (size_t i = 0; i < json_array_size(cpus); i++) {
		json_t *cpu = json_array_get(cpus, i);
		json_t *classes = json_object_get(cpu, "classes");

		for (size_t k = 0; k < json_array_size(classes); k++) {
			json_t *c = json_array_get(classes, k);
			json_int_t in = number(c, "in");
			json_int_t out = number(c, "out");

			/* What comes and goes on one CPU flows nowhere. */
			if (out + number(c, "away") == 0 &&
			    number(c, "back") == 0)
				continue;
			if (!any)
				(void)printf("%8s %8s %12s %12s %12s %12s\n",
				    "cpu", "size", "taken", "from rings",
				    "sent", "sent away");
			any = true;
			(void)printf(
			    "%8lld %8lld %12lld %12lld %12lld %12lld\n",
			    number(cpu, "cpu"), number(c, "size"), in,
			    number(c, "back"), out, number(c, "away"));
		}
	}
}

int
cmd_bleed(int argc, char **argv)
{
	struct target t;
	json_t *flows;
	int status;

	if (argc != 2)
		return misused("bleed");
	status = find_channel(argv[1], &t);
	if (status != DONE)
		return status;
	flows = read_flows(&t, &status);
	if (flows == NULL)
		return status;
	if (settings.json)
		return put_json(flows) ? DONE : REFUSED;
	show_words(flows);
	show_matrix(flows);
	show_classes(flows);
	json_decref(flows);
	return DONE;
}
