# SPDX-License-Identifier: BSD-2-Clause
#
# gen-names.awk - the part of gen-ctl.awk that makes what follows from the names
# of mallctl(3) in lib/ctl/ctl.tab: kinds ctl, fixed, index, and each option as
# opt.NAME.  Always used together with it:
#
#   awk -v out=names-h    -f gen-names.awk -f gen-ctl.awk ctl.tab  prototypes
#   awk -v out=names-c    ...  the tree of names, for lib/ctl/mallctl.c
#   awk -v out=names-man  ...  names, for mallctl(3)
#   awk -v out=names-test ...  one CTL_NAME each, <i> and <j> being 0
#
# A name has components with dots between.  {a,b} in it means as many names; %1
# and %2 in answer and arg are what stands there in the first and second braces.

BEGIN {
	split("bool unsigned uint32 size ssize uint64 int64 string pointer " \
	    "void other", nt, " ")
	for (i in nt)
		name_type[nt[i]] = 1
	split("r w rw void", nt, " ")
	for (i in nt)
		name_access[nt[i]] = 1
	n_names = n_answers = n_index = n_text = text_len = 0
}

# The first of the names that one with braces means.
function first_name(name,    from, inner)
{
	while ((from = index(name, "{")) > 0) {
		inner = substr(name, from + 1, index(name, "}") - from - 1)
		sub(/,.*/, "", inner)
		name = substr(name, 1, from - 1) inner \
		    substr(name, index(name, "}") + 1)
	}
	return name
}

function in_order(name)
{
	name = first_name(name)
	if (last_ctl != "" && name <= last_ctl)
		die("not in order after " last_ctl)
	last_ctl = name
}

function check_name(name)
{
	gsub(/<[ij]>/, "0", name)
	gsub(/[{},]/, "", name)
	if (name !~ /^[a-z0-9_]+(\.[a-z0-9_]+)*$/)
		die("not a name")
}

function replace(s, what, by,    at, done)
{
	while ((at = index(s, what)) > 0) {
		done = done substr(s, 1, at - 1) by
		s = substr(s, at + length(what))
	}
	return done s
}

function take_ctl()
{
	need("type access answer since brief")
	gsub(/ /, "", rec["name"])
	check_name(rec["name"])
	if (!(rec["type"] in name_type))
		die("unknown type " rec["type"])
	if (!(rec["access"] in name_access))
		die("unknown access " rec["access"])
	if ((rec["type"] == "void") != (rec["access"] == "void"))
		die("void is both or neither")
	in_order(rec["name"])
	n_entries++
	e_name[n_entries] = rec["name"]
	e_type[n_entries] = rec["type"]
	e_access[n_entries] = rec["access"]
	e_since[n_entries] = rec["since"]
	e_brief[n_entries] = rec["brief"]
	e_doc[n_entries] = rec["doc"]
	e_zero[n_entries] = rec["answer"] == "fixed" && rec["arg"] == "0"
	spread(rec["name"], 1, rec["answer"], "arg" in rec ? rec["arg"] : "0")
}

# One name each for what stands in braces.
function spread(name, k, answer, arg,    from, to, n, v, i)
{
	from = index(name, "{")
	if (from == 0) {
		add_name(name, rec["type"], rec["access"], answer, arg)
		return
	}
	to = index(name, "}")
	if (to < from)
		die("odd braces")
	n = split(substr(name, from + 1, to - from - 1), v, ",")
	for (i = 1; i <= n; i++)
		spread(substr(name, 1, from - 1) v[i] substr(name, to + 1),
		    k + 1, replace(answer, "%" k, v[i]),
		    replace(arg, "%" k, v[i]))
}

function take_index()
{
	need("answer brief")
	check_name(rec["name"])
	if (rec["name"] !~ /<[ij]>$/)
		die("no number at the end")
	in_order(rec["name"])
	index_of[rec["name"]] = rec["answer"]
	n_entries++
	e_name[n_entries] = rec["name"]
	e_type[n_entries] = "index"
	e_brief[n_entries] = rec["brief"]
	e_doc[n_entries] = rec["doc"]
	if (!(rec["answer"] in number_of_index)) {
		index_name[n_index] = rec["answer"]
		number_of_index[rec["answer"]] = n_index++
	}
}

function take_fixed(    n, i, v, at, value)
{
	need("type names")
	if (!(rec["type"] in name_type))
		die("unknown type " rec["type"])
	n = split(rec["names"], v, " ")
	for (i = 1; i <= n; i++) {
		at = index(v[i], "=")
		if (at == 0)
			die("no value of " v[i])
		value = substr(v[i], at + 1)
		v[i] = substr(v[i], 1, at - 1)
		check_name(v[i])
		if (i > 1 && v[i] <= v[i - 1])
			die(v[i] " is not in order")
		if (rec["type"] == "bool" && value !~ /^(true|false)$/)
			die(v[i] " is not true or false")
		if (rec["type"] == "string")
			add_name(v[i], "string", "r", "word", value)
		else
			add_name(v[i], rec["type"], "r", "fixed", value)
		f_name[++n_fixed] = v[i]
		f_type[n_fixed] = rec["type"]
		f_value[n_fixed] = value
	}
}

function add_name(name, type, access, answer, arg)
{
	if (name in name_seen)
		die("two of " name)
	name_seen[name] = 1
	n_names++
	n_name[n_names] = name
	n_type[n_names] = type
	n_access[n_names] = access
	n_answer[n_names] = answer
	n_arg[n_names] = arg
	if (!(answer in number_of_answer)) {
		answer_name[n_answers] = answer
		number_of_answer[answer] = n_answers++
	}
}

# Each option that has a field of its own.
function add_options(    i, type)
{
	for (i = 1; i <= n_opts; i++) {
		if (o_type[i] == "lg")
			continue
		type = o_type[i] == "ms" ? "ssize" : \
		    o_type[i] == "enum" ? "string" : o_type[i]
		add_name("opt." o_name[i], type, "r",
		    o_type[i] == "enum" ? "opt_word" : "opt",
		    "offsetof(struct eddy_opts, " o_field[i] ")")
		if (o_type[i] == "enum")
			n_words[n_names] = o_values[i]
	}
}

# The place of a string among all strings; several words stand side by side.
function text_at(s, many,    key, n, v, i)
{
	key = (many ? "*" : "") s
	if (key in text_place)
		return text_place[key]
	text_place[key] = text_len
	n = many ? split(s, v, " ") : 1
	if (!many)
		v[1] = s
	for (i = 1; i <= n; i++) {
		text_line[n_text++] = v[i]
		text_len += length(v[i]) + 1
	}
	return text_place[key]
}

# Puts the names into a tree whose nodes are their beginnings.
function plant(    i, j, n, v, path, up, is_new)
{
	n_nodes = 1
	path_of[1] = ""
	id[""] = 1
	for (i = 1; i <= n_names; i++) {
		n = split(n_name[i], v, ".")
		if (n > deepest)
			deepest = n
		path = ""
		for (j = 1; j <= n; j++) {
			up = path
			path = path == "" ? v[j] : path "." v[j]
			if (path in id)
				continue
			id[path] = ++n_nodes
			path_of[n_nodes] = path
			part_of[n_nodes] = v[j]
			kids[up] = kids[up] " " n_nodes
			if (v[j] ~ /^</ && !(path in index_of))
				die_late("no index " path)
		}
		leaf_of[path] = i
	}
	for (path in leaf_of)
		if (path in kids)
			die_late(path " is a name and begins others")
	for (path in index_of)
		if (!(path in id))
			die_late(path " begins no name")
}

function die_late(m)
{
	print "ctl.tab: " m > "/dev/stderr"
	exit 1
}

# Numbers the nodes so that those below one node follow each other.
function number_nodes(    at, n, v, i)
{
	order[1] = 1
	place[1] = 0
	n_order = 1
	for (at = 1; at <= n_order; at++) {
		n = path_of[order[at]] in kids ? \
		    split(kids[path_of[order[at]]], v, " ") : 0
		first_kid[order[at]] = n > 0 ? n_order : 0
		n_kids[order[at]] = n
		for (i = 1; i <= n; i++) {
			place[v[i]] = n_order
			order[++n_order] = v[i]
		}
	}
}

function put_names_h(    i)
{
	print "/* SPDX-License-Identifier: BSD-2-Clause */"
	print "/*"
	print " * ctl_gen_names.h - what answers the names of mallctl(3); layer"
	print " * ctl (L5).  Made by scripts/gen-names.awk from lib/ctl/ctl.tab."
	print " */"
	print "#ifndef EDDY_CTL_GEN_NAMES_H"
	print "#define EDDY_CTL_GEN_NAMES_H"
	print ""
	print "#include \"lib/ctl/mallctl.h\""
	print ""
	for (i = 0; i < n_answers; i++)
		print "int eddy_ctl_" answer_name[i] "(struct eddy_ctl *c);"
	print ""
	for (i = 0; i < n_index; i++)
		print "bool eddy_ctl_index_" index_name[i] \
		    "(struct eddy_heap *h, size_t i);"
	print ""
	print "#endif /* EDDY_CTL_GEN_NAMES_H */"
}

function put_names_c(    i, node, path, what, kind, arg, absent)
{
	print "/* SPDX-License-Identifier: BSD-2-Clause */"
	print "/*"
	print " * ctl_gen_names.inc - the tree of names, for mallctl.c.  No"
	print " * pointers: nothing to relocate.  Made by scripts/gen-names.awk"
	print " * from lib/ctl/ctl.tab."
	print " */"
	print "#define CTL_DEPTH " deepest
	print ""
	print "static const struct leaf leaves[] = {"
	for (i = 1; i <= n_names; i++) {
		arg = n_arg[i]
		if (n_answer[i] == "word")
			arg = text_at(n_arg[i], 0)
		else if (i in n_words)
			arg = n_arg[i] " << 16 | " text_at(n_words[i], 1)
		# Of what is not there nothing is checked before.
		absent = n_answer[i] == "absent"
		printf "\t{ %s, EDDY_CTL_%s, CTL_%s, %d }, /* %s */\n", arg,
		    absent ? "OTHER" : toupper(n_type[i]),
		    absent ? "RW" : toupper(n_access[i]),
		    number_of_answer[n_answer[i]], n_name[i]
	}
	print "};"
	print ""
	print "static const struct node nodes[] = {"
	for (i = 1; i <= n_order; i++) {
		node = order[i]
		path = path_of[node]
		if (path in leaf_of) {
			kind = "LEAF"
			what = leaf_of[path] - 1
		} else if (n_kids[node] == 1 &&
		    part_of[order[first_kid[node] + 1]] ~ /^</) {
			kind = "INDEXED"
			what = number_of_index[index_of[ \
			    path_of[order[first_kid[node] + 1]]]]
		} else {
			kind = "NAMED"
			what = 0
		}
		printf "\t{ %d, %d, %d, NODE_%s, %d },\n",
		    text_at(part_of[node], 0), first_kid[node], n_kids[node],
		    kind, what
	}
	print "};"
	print ""
	print "static const char text[] ="
	for (i = 0; i < n_text; i++)
		printf "\t\"%s\\0\"%s\n", text_line[i], i == n_text - 1 ? ";" : ""
	print ""
	print "static int"
	print "answer(unsigned which, struct eddy_ctl *c)"
	print "{"
	print "\tswitch (which) {"
	for (i = 0; i < n_answers; i++) {
		print "\tcase " i ":"
		print "\t\treturn eddy_ctl_" answer_name[i] "(c);"
	}
	print "\tdefault:"
	print "\t\treturn ENOENT;"
	print "\t}"
	print "}"
	print ""
	print "static bool"
	print "is_index(unsigned which, struct eddy_heap *h, size_t i)"
	print "{"
	print "\tswitch (which) {"
	for (i = 0; i < n_index; i++) {
		print "\tcase " i ":"
		print "\t\treturn eddy_ctl_index_" index_name[i] "(h, i);"
	}
	print "\tdefault:"
	print "\t\treturn false;"
	print "\t}"
	print "}"
}

function man_type(t)
{
	return t == "uint32" ? "uint32_t" : t == "uint64" ? "uint64_t" : \
	    t == "int64" ? "int64_t" : t == "size" ? "size_t" : \
	    t == "ssize" ? "ssize_t" : t == "string" ? "const char *" : \
	    t == "pointer" ? "void *" : t
}

function man_access(t, a)
{
	return t == "void" ? "action" : \
	    (t == "other" ? "" : man_type(t) ", ") \
	    (a == "r" ? "read" : a == "w" ? "write" : "read and write")
}

# A long name with braces is broken where mdoc(7) takes a new line.
function man_name(name)
{
	gsub(/,/, ",\\:", name)
	gsub(/\./, ".\\:", name)
	return name
}

function put_names_man(    i)
{
	for (i = 1; i <= n_entries; i++) {
		if (e_zero[i])
			continue
		printf ".It Va %s", man_name(e_name[i])
		if (e_type[i] != "index")
			printf " Pq %s; since %s",
			    man_access(e_type[i], e_access[i]), e_since[i]
		print ""
		print e_brief[i]
		if (e_doc[i] != "")
			print e_doc[i]
	}
	print ".It Va opt.NAME Pq read"
	print "Every option of"
	print ".Xr eddy.conf 5"
	print "that has a field of its own:"
	for (i = 1; i <= n_names; i++)
		if (n_answer[i] ~ /^opt/ && n_name[i] ~ /^opt\./)
			print ".Va " n_name[i] " Pq " man_type(n_type[i]) ","
	print "and jemalloc's with the values below."
	print ".El"
	print ".Ss Names that read 0"
	print "There are no locks here, no huge pages of a kind of their own, and"
	print "what would cost the fast path is not counted:"
	print ".Bl -tag -width indent -compact"
	for (i = 1; i <= n_entries; i++)
		if (e_zero[i])
			print ".It Va " man_name(e_name[i]) " Pq " \
			    man_type(e_type[i])
	print ".El"
	print ".Ss Names with a fixed value"
	print "What jemalloc has and eddy has not reads as it does there by"
	print "default, or where it was not built in."
	print ".Bl -column -offset indent \"opt.experimental_hpa_max_purge_nhp__\"" \
	    " \"const char * \" value"
	for (i = 1; i <= n_fixed; i++)
		printf ".It Va %s Ta %s Ta %s\n", f_name[i],
		    man_type(f_type[i]),
		    f_value[i] == "" ? "(empty)" : f_value[i]
	print ".El"
}

function put_names_test(    i, name)
{
	print "/* ctl_gen_names_test.inc - made by scripts/gen-names.awk. */"
	for (i = 1; i <= n_names; i++) {
		name = n_name[i]
		gsub(/<[ij]>/, "0", name)
		printf "CTL_NAME(\"%s\", %s, %s, %s)\n", name,
		    toupper(n_type[i]),
		    n_access[i] == "void" ? "RW" : toupper(n_access[i]),
		    toupper(n_answer[i])
	}
}

function put_names()
{
	add_options()
	plant()
	number_nodes()
	if (out == "names-h")
		put_names_h()
	else if (out == "names-c")
		put_names_c()
	else if (out == "names-man")
		put_names_man()
	else
		put_names_test()
}
