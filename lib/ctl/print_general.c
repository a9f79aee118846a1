/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * print_general.c - version, options, size classes and totals, in the order and
 * the words of jemalloc's report.
 */
#include "lib/ctl/print.h"
#include "lib/os/os.h"

/* A word before the values of a name, in text. */
static void
text_name(struct eddy_print *p, const struct eddy_print_stem *s,
    const char *indent, const char *words, const char *key, const char *note)
{
	static const struct eddy_print_stem none = {.len = 0};
	struct eddy_ctl v;

	if (!eddy_print_look(p, s, key, &v))
		return;
	eddy_text_add(&p->text, indent);
	if (words == NULL) {
		eddy_text_add(&p->text, s->name);
		eddy_text_add(&p->text, key);
	} else {
		eddy_text_add(&p->text, words);
	}
	eddy_text_add(&p->text, ": ");
	eddy_print_value(p, &v);
	if (note != NULL && eddy_print_look(p, &none, note, &v)) {
		eddy_text_add(&p->text, " (");
		eddy_text_add(&p->text, note);
		eddy_text_add(&p->text, ": ");
		eddy_print_value(p, &v);
		eddy_text_add(&p->text, ")");
	}
	eddy_text_add(&p->text, "\n");
}

static void
put_name(struct eddy_print *p, const struct eddy_print_stem *s, const char *key,
    const char *note)
{
	if (p->json)
		eddy_json_name(p, s, key, key);
	else
		text_name(p, s, "  ", NULL, key, note);
}

static void
begin_group(struct eddy_print *p, const char *key, const char *words)
{
	if (p->json) {
		eddy_json_open(p, key, "{");
		return;
	}
	eddy_text_add(&p->text, words);
	eddy_text_add(&p->text, "\n");
}

static void
end_group(struct eddy_print *p)
{
	if (p->json)
		eddy_json_close(p, "}");
}

/* ------------------------------------------------------------------ */

static void
put_config(struct eddy_print *p)
{
	static const char *const keys[] = {"cache_oblivious", "debug", "fill",
	    "lazy_lock", "malloc_conf", "opt_safety_checks", "prof",
	    "prof_libgcc", "prof_libunwind", "prof_frameptr", "stats", "utrace",
	    "xmalloc"};
	struct eddy_print_stem s;

	eddy_print_stem(&s, "config.", UINT64_MAX);
	begin_group(p, "config", "Build-time option settings");
	for (size_t i = 0; i < EDDY_N(keys); i++)
		put_name(p, &s, keys[i], NULL);
	end_group(p);
}

/* What the kernel does with huge pages unasked, in jemalloc's words. */
static const char *
thp_mode(void)
{
	char buf[64];
	ssize_t n =
	    eddy_os_read_file("/sys/kernel/mm/transparent_hugepage/enabled",
		buf, sizeof(buf) - 1);

	for (ssize_t i = 0; i + 1 < n; i++)
		if (buf[i] == '[')
			return buf[i + 1] == 'a'   ? "always"
			       : buf[i + 1] == 'n' ? "never"
						   : "default";
	return "not supported";
}

static void
put_system(struct eddy_print *p)
{
	const char *mode = thp_mode();

	begin_group(p, "system", "System configuration");
	if (p->json) {
		eddy_json_key(p, "thp_mode");
		eddy_text_add(&p->text, "\"");
	} else {
		eddy_text_add(&p->text, "  system.thp_mode: \"");
	}
	eddy_text_add(&p->text, mode);
	eddy_text_add(&p->text, p->json ? "\"" : "\"\n");
	end_group(p);
}

/* Where options came from. */
static void
put_sources(struct eddy_print *p)
{
	static const struct {
		const char *key;
		const char *words;
	} sources[] = {
	    {"global_var", "Global variable malloc_conf"},
	    {"symlink", "Symbolic link malloc.conf"},
	    {"env_var", "Environment variable MALLOC_CONF"},
	    {"global_var_2_conf_harder",
		"Global variable malloc_conf_2_conf_harder"},
	};
	struct eddy_print_stem s;
	struct eddy_ctl v;

	eddy_print_stem(&s, "opt.malloc_conf.", UINT64_MAX);
	for (size_t i = 0; i < EDDY_N(sources); i++) {
		bool there = eddy_print_look(p, &s, sources[i].key, &v);

		/* What there is not says nothing; the last is seldom. */
		if (!there && i == 3)
			continue;
		if (!there)
			v = (struct eddy_ctl){.type = EDDY_CTL_STRING};
		if (p->json) {
			eddy_json_key(p, sources[i].key);
		} else {
			eddy_text_add(&p->text, "  ");
			eddy_text_add(&p->text, sources[i].words);
			eddy_text_add(&p->text, ": ");
		}
		eddy_print_value(p, &v);
		if (!p->json)
			eddy_text_add(&p->text, "\n");
	}
}

/* Every option of jemalloc's, and what may change it at run time. */
static const struct {
	const char *key;
	const char *note;
} options[] = {
    {"abort", NULL},
    {"abort_conf", NULL},
    {"cache_oblivious", NULL},
    {"confirm_conf", NULL},
    {"trust_madvise", NULL},
    {"experimental_hpa_start_huge_if_thp_always", NULL},
    {"experimental_hpa_enforce_hugify", NULL},
    {"retain", NULL},
    {"dss", NULL},
    {"narenas", NULL},
    {"percpu_arena", NULL},
    {"oversize_threshold", NULL},
    {"hpa", NULL},
    {"hpa_slab_max_alloc", NULL},
    {"hpa_hugification_threshold", NULL},
    {"hpa_hugify_delay_ms", NULL},
    {"hpa_hugify_sync", NULL},
    {"hpa_min_purge_interval_ms", NULL},
    {"experimental_hpa_max_purge_nhp", NULL},
    {"hpa_dirty_mult", NULL},
    {"hpa_purge_threshold", NULL},
    {"hpa_min_purge_delay_ms", NULL},
    {"hpa_hugify_style", NULL},
    {"hpa_sec_nshards", NULL},
    {"hpa_sec_max_alloc", NULL},
    {"hpa_sec_max_bytes", NULL},
    {"huge_arena_pac_thp", NULL},
    {"metadata_thp", NULL},
    {"mutex_max_spin", NULL},
    {"background_thread", "background_thread"},
    {"max_background_threads", "max_background_threads"},
    {"dirty_decay_ms", "arenas.dirty_decay_ms"},
    {"muzzy_decay_ms", "arenas.muzzy_decay_ms"},
    {"lg_extent_max_active_fit", NULL},
    {"calloc_madvise_threshold", NULL},
    {"junk", NULL},
    {"zero", NULL},
    {"utrace", NULL},
    {"xmalloc", NULL},
    {"experimental_infallible_new", NULL},
    {"experimental_tcache_gc", NULL},
    {"tcache", NULL},
    {"tcache_max", NULL},
    {"tcache_nslots_small_min", NULL},
    {"tcache_nslots_small_max", NULL},
    {"tcache_nslots_large", NULL},
    {"lg_tcache_nslots_mul", NULL},
    {"tcache_gc_incr_bytes", NULL},
    {"tcache_gc_delay_bytes", NULL},
    {"lg_tcache_flush_small_div", NULL},
    {"lg_tcache_flush_large_div", NULL},
    {"debug_double_free_max_scan", NULL},
    {"thp", NULL},
    {"prof", NULL},
    {"prof_bt_max", NULL},
    {"prof_prefix", NULL},
    {"prof_active", "prof.active"},
    {"prof_thread_active_init", "prof.thread_active_init"},
    {"lg_prof_sample", "prof.lg_sample"},
    {"prof_accum", NULL},
    {"lg_prof_interval", NULL},
    {"prof_gdump", NULL},
    {"prof_final", NULL},
    {"prof_leak", NULL},
    {"prof_leak_error", NULL},
    {"prof_pid_namespace", NULL},
    {"prof_recent_alloc_max", NULL},
    {"prof_stats", NULL},
    {"prof_sys_thread_name", NULL},
    {"prof_time_resolution", NULL},
    {"stats_print", NULL},
    {"stats_print_opts", NULL},
    {"stats_interval", NULL},
    {"stats_interval_opts", NULL},
    {"zero_realloc", NULL},
    {"process_madvise_max_batch", NULL},
    {"disable_large_size_classes", NULL},
    {"lg_san_uaf_align", NULL},
    {"san_guard_small", NULL},
    {"san_guard_large", NULL},
};

static void
put_options(struct eddy_print *p)
{
	struct eddy_print_stem s;

	begin_group(p, "opt", "Run-time option settings");
	put_sources(p);
	eddy_print_stem(&s, "opt.", UINT64_MAX);
	for (size_t i = 0; i < EDDY_N(options); i++)
		put_name(p, &s, options[i].key, options[i].note);
	end_group(p);
}

static void
put_profiling(struct eddy_print *p)
{
	static const char *const keys[] = {
	    "thread_active_init", "active", "gdump", "interval", "lg_sample"};
	struct eddy_print_stem config;
	struct eddy_print_stem s;

	eddy_print_stem(&config, "config.", UINT64_MAX);
	if (eddy_print_number_of(p, &config, "prof") == 0)
		return;
	eddy_print_stem(&s, "prof.", UINT64_MAX);
	begin_group(p, "prof", "Profiling settings");
	for (size_t i = 0; i < EDDY_N(keys); i++)
		put_name(p, &s, keys[i], NULL);
	end_group(p);
}

/* Size classes: JSON alone. */
static void
json_sizes(struct eddy_print *p, const char *key, const char *stem, uint64_t n,
    const char *const *keys, size_t n_keys)
{
	eddy_json_open(p, key, "[");
	for (uint64_t i = 0; i < n; i++) {
		struct eddy_print_stem s;

		eddy_print_stem(&s, stem, i);
		eddy_json_open(p, NULL, "{");
		eddy_json_names(p, &s, keys, n_keys);
		eddy_json_close(p, "}");
	}
	eddy_json_close(p, "]");
}

static void
put_arenas(struct eddy_print *p)
{
	static const struct {
		const char *key;
		const char *words;
	} lines[] = {
	    {"narenas", "Arenas"},
	    {"dirty_decay_ms", NULL},
	    {"muzzy_decay_ms", NULL},
	    {"quantum", "Quantum size"},
	    {"page", "Page size"},
	    {"hugepage", "Hugepage size"},
	    {"tcache_max", "Maximum thread-cached size class"},
	    {"nbins", "Number of bin size classes"},
	    {"nhbins", "Number of thread-cache bin size classes"},
	};
	static const char *const bin[] = {
	    "size", "nregs", "slab_size", "nshards"};
	static const char *const lextent[] = {"size"};
	struct eddy_print_stem s;

	eddy_print_stem(&s, "arenas.", UINT64_MAX);
	if (p->json)
		eddy_json_open(p, "arenas", "{");
	for (size_t i = 0; i < EDDY_N(lines); i++)
		if (p->json)
			eddy_json_name(p, &s, lines[i].key, lines[i].key);
		else if (lines[i].words != NULL)
			text_name(
			    p, &s, "", lines[i].words, lines[i].key, NULL);
	if (!p->json) {
		text_name(p, &s, "", "Number of large size classes",
		    "nlextents", NULL);
		return;
	}
	json_sizes(p, "bin", "arenas.bin.",
	    eddy_print_number_of(p, &s, "nbins"), bin, EDDY_N(bin));
	eddy_json_name(p, &s, "nlextents", "nlextents");
	json_sizes(p, "lextent", "arenas.lextent.",
	    eddy_print_number_of(p, &s, "nlextents"), lextent, 1);
	eddy_json_close(p, "}");
}

void
eddy_print_general(struct eddy_print *p)
{
	static const struct eddy_print_stem none = {.len = 0};

	if (p->json)
		eddy_json_name(p, &none, "version", "version");
	else
		text_name(p, &none, "", "Version", "version", NULL);
	put_config(p);
	put_system(p);
	put_options(p);
	put_profiling(p);
	put_arenas(p);
}

/* ------------------------------------------------------------------ */

static const char *const locks[] = {"background_thread", "max_per_bg_thd",
    "ctl", "prof", "prof_thds_data", "prof_dump", "prof_recent_alloc",
    "prof_recent_dump", "prof_stats"};

static void
text_totals(struct eddy_print *p, const struct eddy_print_stem *s)
{
	static const struct {
		const char *words;
		const char *key;
	} parts[] = {
	    {"Allocated: ", "allocated"},
	    {", active: ", "active"},
	    {", metadata: ", "metadata"},
	    {" (n_thp ", "metadata_thp"},
	    {", edata ", "metadata_edata"},
	    {", rtree ", "metadata_rtree"},
	    {"), resident: ", "resident"},
	    {", mapped: ", "mapped"},
	    {", retained: ", "retained"},
	    {", pinned: ", "pinned"},
	    {"\nCount of realloc(non-null-ptr, 0) calls: ", "zero_reallocs"},
	    {"\nBackground threads: ", "background_thread.num_threads"},
	    {", num_runs: ", "background_thread.num_runs"},
	    {", run_interval: ", "background_thread.run_interval"},
	};

	for (size_t i = 0; i < EDDY_N(parts); i++) {
		eddy_text_add(&p->text, parts[i].words);
		eddy_text_number(
		    &p->text, eddy_print_number_of(p, s, parts[i].key), 0);
	}
	eddy_text_add(&p->text, " ns\n");
}

void
eddy_print_totals(struct eddy_print *p)
{
	static const char *const keys[] = {"allocated", "active", "metadata",
	    "metadata_edata", "metadata_rtree", "metadata_thp", "resident",
	    "mapped", "retained", "pinned", "zero_reallocs"};
	static const char *const thread[] = {
	    "num_threads", "num_runs", "run_interval"};
	struct eddy_print_stem s;

	eddy_print_stem(&s, "stats.", UINT64_MAX);
	if (p->json) {
		eddy_json_open(p, "stats", "{");
		eddy_json_names(p, &s, keys, EDDY_N(keys));
		eddy_print_stem(&s, "stats.background_thread.", UINT64_MAX);
		eddy_json_open(p, "background_thread", "{");
		eddy_json_names(p, &s, thread, EDDY_N(thread));
		eddy_json_close(p, "}");
	} else {
		text_totals(p, &s);
	}
	eddy_print_stem(&s, "stats.mutexes.", UINT64_MAX);
	if (!p->no_mutexes)
		eddy_print_mutexes(p, &s, locks, EDDY_N(locks));
	if (p->json)
		eddy_json_close(p, "}");
}
