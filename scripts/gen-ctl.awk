# SPDX-License-Identifier: BSD-2-Clause
#
# gen-ctl.awk - makes what follows from lib/ctl/ctl.tab (its head says how the
# table is written).  POSIX awk.
#
#   awk -v out=h    -f gen-names.awk -f gen-ctl.awk ctl.tab  eddy_opts, enums
#   awk -v out=c    ...  the parser's tables
#   awk -v out=man  ...  options, for eddy.conf(5)
#   awk -v out=test ...  one CTL_OPT or CTL_COMPAT each
#   gen-names.awk says what else there is, for the names of mallctl(3).
#
# A missing field, an unknown one or disorder ends with status 1.

function die(m)
{
	print "ctl.tab: record " NR ": " rec["name"] ": " m > "/dev/stderr"
	bad = 1
	exit 1
}

function need(list,    i, n, k)
{
	n = split(list, k, " ")
	for (i = 1; i <= n; i++)
		if (!(k[i] in rec))
			die("no " k[i])
}


BEGIN {
	RS = ""
	FS = "\n"
	split("name kind type unit min max default values clip field since " \
	    "brief doc names access answer arg", fields, " ")
	for (i in fields)
		known[fields[i]] = 1
	split("bool unsigned size enum string lg ms", t, " ")
	for (i in t)
		opt_type[t[i]] = 1
	split("bool int fixed any", t, " ")
	for (i in t)
		compat_type[t[i]] = 1
	if (out !~ /^(names-)?(h|c|man|test)$/) {
		print "gen-ctl.awk: -v out=[names-]h|c|man|test" > "/dev/stderr"
		bad = 1
		exit 1
	}
}

# Reads one record into rec; lines of a doc stay lines.
{
	split("", rec)
	key = ""
	for (i = 1; i <= NF; i++) {
		if ($i ~ /^#/)
			continue
		if ($i ~ /^[ \t]/) {
			if (key == "")
				die("a continuation of nothing")
			sub(/^[ \t]+/, "", $i)
			rec[key] = rec[key] (key == "doc" ? "\n" : " ") $i
			continue
		}
		if (!match($i, /^[a-z]+:/))
			die("what is \"" $i "\"?")
		key = substr($i, 1, RLENGTH - 1)
		if (!(key in known))
			die("unknown field " key)
		if (key in rec)
			die("two of " key)
		rec[key] = substr($i, RLENGTH + 1)
		sub(/^[ \t]+/, "", rec[key])
	}
	if (key == "")
		next
	need("name kind")
	if (rec["kind"] == "opt")
		take_opt()
	else if (rec["kind"] == "compat")
		take_compat()
	else if (rec["kind"] == "ctl")
		take_ctl()
	else if (rec["kind"] == "index")
		take_index()
	else if (rec["kind"] == "fixed")
		take_fixed()
	else
		die("unknown kind " rec["kind"])
}

function take_opt(    i, n, v, name)
{
	need("type unit min max default field since brief doc")
	name = rec["name"]
	if (name !~ /^[a-z][a-z0-9_]*$/)
		die("not a name")
	if (!(rec["type"] in opt_type))
		die("unknown type " rec["type"])
	if (rec["type"] == "enum")
		need("values")
	if (rec["type"] ~ /^(unsigned|size|string|lg|ms)$/ &&
	    (rec["min"] !~ /^[0-9]+$/ || rec["max"] !~ /^[0-9]+$/))
		die("min and max must be numbers")
	if (n_opts > 0 && name <= o_name[n_opts])
		die("not in order after " o_name[n_opts])
	if (n_compat > 0)
		die("an opt after a compat")
	n_opts++
	o_name[n_opts] = name
	o_type[n_opts] = rec["type"]
	o_unit[n_opts] = rec["unit"]
	o_min[n_opts] = rec["min"] == "-" ? 0 : rec["min"]
	o_max[n_opts] = rec["max"] == "-" ? 1 : rec["max"]
	o_default[n_opts] = rec["default"]
	o_field[n_opts] = rec["field"]
	o_since[n_opts] = rec["since"]
	o_brief[n_opts] = rec["brief"]
	o_doc[n_opts] = rec["doc"]
	o_clip[n_opts] = rec["clip"] == "yes"
	o_values[n_opts] = rec["values"]
	o_number[n_opts] = rec["default"]
	if (rec["type"] == "bool") {
		if (rec["default"] !~ /^(true|false)$/)
			die("default must be true or false")
		o_number[n_opts] = rec["default"] == "true"
	} else if (rec["type"] == "enum") {
		n = split(rec["values"], v, " ")
		o_max[n_opts] = n - 1
		o_number[n_opts] = -1
		for (i = 1; i <= n; i++)
			if (v[i] == rec["default"])
				o_number[n_opts] = i - 1
		if (o_number[n_opts] < 0)
			die("default is none of the values")
	} else if (rec["type"] == "string") {
		# The text stands where an enum has its words.
		if (length(rec["default"]) > 31)
			die("default is too long")
		o_values[n_opts] = rec["default"]
		o_number[n_opts] = 0
	} else if (rec["type"] == "ms" && rec["default"] == "-1") {
		o_number[n_opts] = "(uint64_t)-1"
	} else if (rec["default"] !~ /^[0-9]+$/ ||
	    rec["default"] + 0 < rec["min"] + 0 ||
	    rec["default"] + 0 > rec["max"] + 0)
		die("default is outside the range")
	if (rec["type"] != "lg") {
		if (rec["field"] in owner)
			die("field of " owner[rec["field"]])
		owner[rec["field"]] = name
	}
	take_name(name)
}

function take_compat(    i, n, v)
{
	need("type names")
	if (!(rec["type"] in compat_type))
		die("unknown type " rec["type"])
	if (n_compat > 0 && rec["name"] <= c_name[n_compat])
		die("not in order after " c_name[n_compat])
	n_compat++
	c_name[n_compat] = rec["name"]
	c_type[n_compat] = rec["type"]
	c_names[n_compat] = rec["names"]
	n = split(rec["names"], v, " ")
	for (i = 1; i <= n; i++) {
		if (i > 1 && v[i] <= v[i - 1])
			die(v[i] " is not in order")
		take_name(v[i])
	}
}

function take_name(name)
{
	if (name in all)
		die("two of " name)
	all[name] = 1
}

function c_type_of(i)
{
	if (o_type[i] == "enum")
		return "enum eddy_opt_" o_name[i]
	return o_type[i] == "size" ? "size_t" : \
	    o_type[i] == "ms" ? "int64_t" : \
	    o_type[i] == "unsigned" ? "uint32_t" : o_type[i]
}


function put_h(    i, j, n, v)
{
	print "/* SPDX-License-Identifier: BSD-2-Clause */"
	print "/*"
	print " * ctl_gen.h - the options; layer ctl (L5), plain data."
	print " * Made by scripts/gen-ctl.awk from lib/ctl/ctl.tab."
	print " */"
	print "#ifndef EDDY_CTL_GEN_H"
	print "#define EDDY_CTL_GEN_H"
	print ""
	print "#include <stdbool.h>"
	print "#include <stddef.h>"
	print "#include <stdint.h>"
	for (i = 1; i <= n_opts; i++) {
		if (o_type[i] != "enum")
			continue
		print ""
		print "enum eddy_opt_" o_name[i] " {"
		n = split(o_values[i], v, " ")
		for (j = 1; j <= n; j++)
			print "\tEDDY_" toupper(o_name[i]) "_" toupper(v[j]) ","
		print "};"
	}
	print ""
	print "struct eddy_opts {"
	for (i = 1; i <= n_opts; i++) {
		if (o_type[i] == "lg")
			continue
		print "\t/* " o_brief[i] " */"
		if (o_type[i] == "string")
			print "\tchar " o_field[i] "[" o_max[i] + 1 "];"
		else
			print "\t" c_type_of(i) " " o_field[i] ";"
	}
	print "};"
	print ""
	print "#endif /* EDDY_CTL_GEN_H */"
}

function put_c(    i, j, n, v)
{
	print "/* SPDX-License-Identifier: BSD-2-Clause */"
	print "/*"
	print " * ctl_gen.inc - the tables of conf.c.  No pointers: nothing to"
	print " * relocate.  Made by scripts/gen-ctl.awk from lib/ctl/ctl.tab."
	print " */"
	print "static const struct option options[] = {"
	for (i = 1; i <= n_opts; i++) {
		printf "\t{ \"%s\", \"%s\", OPT_%s, %s, ", o_name[i],
		    o_values[i], toupper(o_type[i]),
		    o_clip[i] ? "true" : "false"
		printf "offsetof(struct eddy_opts, %s), %s, %s, %s },\n",
		    o_field[i], o_min[i], o_max[i], o_number[i]
	}
	print "};"
	for (i = 1; i <= n_compat; i++) {
		print ""
		printf "static const char compat_%s[] = \" \"", c_type[i]
		n = split(c_names[i], v, " ")
		for (j = 1; j <= n; j++)
			printf "\n\t\"%s \"", v[j]
		print ";"
	}
}

function put_man(    i, j, n, v, all_names, t)
{
	for (i = 1; i <= n_opts; i++) {
		printf ".It Va %s ", o_name[i]
		if (o_type[i] == "bool")
			printf "Pq true or false, default %s", o_default[i]
		else if (o_type[i] == "enum") {
			n = split(o_values[i], v, " ")
			printf "Pq %s", v[1]
			for (j = 2; j <= n; j++)
				printf "%s%s", j == n ? " or " : ", ", v[j]
			printf "; default %s", o_default[i]
		} else if (o_type[i] == "string")
			printf "Pq %s, at most %s%s", o_unit[i], o_max[i], \
			    o_default[i] != "" ? ", default " o_default[i] : ""
		else
			printf "Pq %s, %s%s to %s, default %s", o_unit[i],
			    o_type[i] == "ms" ? "-1 or " : "", o_min[i],
			    o_max[i], o_default[i]
		print "; since " o_since[i]
		print toupper(substr(o_brief[i], 1, 1)) substr(o_brief[i], 2) "."
		print o_doc[i]
		if (o_clip[i])
			print "A value outside the range becomes its nearest end."
	}
	print ".El"
	print ".Ss Options of jemalloc that have no effect"
	print "They are accepted, so that strings written for jemalloc serve."
	print "The value must still be of the option's kind."
	for (i = 1; i <= n_compat; i++) {
		t = c_type[i]
		print ".Pp"
		print t == "bool" ? "True or false:" : \
		    t == "int" ? "Whole numbers:" : \
		    t == "fixed" ? "Numbers, perhaps with a fraction:" : \
		    "Words:"
		n = split(c_names[i], v, " ")
		for (j = 1; j <= n; j++)
			print ".Va " v[j] (j < n ? " ," : " .")
	}
	print ".Pp"
	print "So is any other name that begins with"
	print ".Ql experimental_ ."
}

function put_test(    i, j, n, v)
{
	print "/* ctl_gen_test.inc - made by scripts/gen-ctl.awk from ctl.tab. */"
	for (i = 1; i <= n_opts; i++)
		printf "CTL_OPT(%s, %s, %s, %s, %s, %s, %d, \"%s\")\n",
		    o_name[i], toupper(o_type[i]), o_field[i], o_min[i],
		    o_max[i], o_number[i], o_clip[i], o_values[i]
	for (i = 1; i <= n_compat; i++) {
		n = split(c_names[i], v, " ")
		for (j = 1; j <= n; j++)
			printf "CTL_COMPAT(%s, %s)\n", v[j], toupper(c_type[i])
	}
}

END {
	if (bad)
		exit 1
	for (i = 1; i <= n_opts; i++)
		if (!(o_field[i] in owner)) {
			print "ctl.tab: no option owns field " o_field[i] \
			    > "/dev/stderr"
			exit 1
		}
	if (out == "h")
		put_h()
	else if (out == "c")
		put_c()
	else if (out == "man")
		put_man()
	else if (out == "test")
		put_test()
	else
		put_names()
}
