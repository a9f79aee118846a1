# SPDX-License-Identifier: BSD-2-Clause
#
# gen-tool.awk - the part of gen-ctl.awk that makes what eddyctl knows of
# lib/ctl/ctl.tab.  Always used with both others, before gen-ctl.awk:
#
#   awk -v out=names-c -v tool=c    -f gen-names.awk -f gen-tool.awk \
#       -f gen-ctl.awk ctl.tab      names and options, for tools/table.c
#   awk ... -v tool=bash -v commands=tools/commands.def   completion
#   awk ... -v tool=zsh  -v commands=tools/commands.def   completion

function c_string(s)
{
	gsub(/\\\(dq/, "'", s)
	gsub(/ \.[A-Z][a-z] /, " ", s)
	gsub(/\\/, "\\\\\\\\", s)
	gsub(/"/, "\\\"", s)
	return "\"" s "\""
}

# Gives each name that braces stand for the line of its record.
function spread_brief(name, brief,    from, to, n, v, i)
{
	from = index(name, "{")
	if (from == 0) {
		brief_of[name] = brief
		return
	}
	to = index(name, "}")
	n = split(substr(name, from + 1, to - from - 1), v, ",")
	for (i = 1; i <= n; i++)
		spread_brief(substr(name, 1, from - 1) v[i] \
		    substr(name, to + 1), brief)
}

function take_briefs(    i)
{
	for (i = 1; i <= n_entries; i++)
		spread_brief(e_name[i], e_brief[i])
	for (i = 1; i <= n_fixed; i++)
		brief_of[f_name[i]] = "Fixed: " \
		    (f_value[i] == "" ? "empty" : f_value[i]) "."
	for (i = 1; i <= n_opts; i++)
		brief_of["opt." o_name[i]] = "Option: " o_brief[i] "."
}

# Names in their order.
function sort_names(    i, j, t)
{
	for (i = 1; i <= n_names; i++) {
		for (j = i; j > 1 && n_name[by_name[j - 1]] > n_name[i]; j--)
			by_name[j] = by_name[j - 1]
		by_name[j] = i
	}
}

function tool_kind(i,    t)
{
	t = o_type[i]
	if (t == "bool")
		return "true or false"
	if (t == "enum") {
		t = o_values[i]
		gsub(/ /, "|", t)
		return t
	}
	if (t == "string")
		return o_unit[i]
	return o_unit[i] ", " (t == "ms" ? "-1 or " : "") o_min[i] " to " \
	    o_max[i]
}

function put_tool_c(    i, k)
{
	print "/* SPDX-License-Identifier: BSD-2-Clause */"
	print "/* ctl_gen_tool.inc - made by scripts/gen-tool.awk. */"
	print "const struct ctl_name ctl_names[] = {"
	for (i = 1; i <= n_names; i++) {
		k = by_name[i]
		printf "\t{\"%s\", \"%s\", \"%s\",\n\t    %s},\n", n_name[k],
		    n_type[k], n_access[k], c_string(brief_of[n_name[k]])
	}
	print "};"
	print "const struct ctl_option ctl_options[] = {"
	for (i = 1; i <= n_opts; i++)
		printf "\t{\"%s\", %s, %s,\n\t    %s},\n", o_name[i],
		    c_string(tool_kind(i)), c_string(o_default[i]),
		    c_string(o_brief[i])
	print "};"
}

# Names of commands, and what they are for; records are paragraphs here.
function read_commands(    text, line, v, n, i)
{
	while ((getline text < commands) > 0) {
		n = split(text, line, "\n")
		for (i = 1; i <= n; i++)
			if (line[i] ~ /^COMMAND\(/) {
				split(line[i], v, "\"")
				command[++n_commands] = v[2]
				command_brief[n_commands] = v[6]
			}
	}
}

function list_commands(    i, s)
{
	for (i = 1; i <= n_commands; i++)
		s = s (i == 1 ? "" : " ") command[i]
	return s
}

# Names that can be asked for, numbers being 0.
function list_names(which,    i, k, s, name)
{
	for (i = 1; i <= n_names; i++) {
		k = by_name[i]
		name = n_name[k]
		gsub(/<[ij]>/, "0", name)
		if (which == "get" && n_access[k] ~ /r/ ||
		    which == "set" && n_access[k] ~ /w/ ||
		    which == "call" && n_access[k] == "void")
			s = s (s == "" ? "" : " ") name
	}
	return s
}

function list_options(    i, s)
{
	for (i = 1; i <= n_opts; i++)
		s = s (i == 1 ? "" : " ") o_name[i] ":"
	return s
}

function put_bash()
{
	print "# SPDX-License-Identifier: BSD-2-Clause"
	print "# Completion of eddyctl(1); made by scripts/gen-tool.awk."
	print "_eddyctl()"
	print "{"
	print "\tlocal cur=${COMP_WORDS[COMP_CWORD]} i words=() want="
	print "\tlocal prev=${COMP_WORDS[COMP_CWORD-1]}"
	print "\tfor ((i = 1; i < COMP_CWORD; i++)); do"
	print "\t\t[[ ${COMP_WORDS[i]} == -* ]] || words+=(\"${COMP_WORDS[i]}\")"
	print "\tdone"
	print "\tif [[ $cur == -* ]]; then"
	print "\t\twant='--json --full --quiet --timeout --interval --times" \
	    " --output --conf --library --prometheus --help --version'"
	print "\telif [[ $prev == -c || $prev == --conf ]]; then"
	print "\t\tcompopt -o nospace"
	print "\t\twant='" list_options() "'"
	print "\telif ((${#words[@]} == 0)); then"
	print "\t\twant='help " list_commands() "'"
	print "\telse"
	print "\t\tcase ${words[0]}:${#words[@]} in"
	print "\t\thelp:1) want='" list_commands() "' ;;"
	print "\t\tget:1 | get:0) want=$(_eddyctl_pids) ;;"
	print "\t\tget:*) want='" list_names("get") "' ;;"
	print "\t\tset:2) want='" list_names("set") "' ;;"
	print "\t\tcall:2) want='" list_names("call") "' ;;"
	print "\t\tprof:2) want='start stop dump' ;;"
	print "\t\tlist:* | names:* | options:*) ;;"
	print "\t\tplot:* | *:3) COMPREPLY=($(compgen -f -- \"$cur\")); return ;;"
	print "\t\trun:*) COMPREPLY=($(compgen -c -- \"$cur\")); return ;;"
	print "\t\t*:1) want=$(_eddyctl_pids) ;;"
	print "\t\tesac"
	print "\tfi"
	print "\tCOMPREPLY=($(compgen -W \"$want\" -- \"$cur\"))"
	print "}"
	print ""
	print "_eddyctl_pids()"
	print "{"
	print "\teddyctl list --quiet 2>/dev/null | awk 'NR > 1 { print $1 }'"
	print "}"
	print ""
	print "complete -F _eddyctl eddyctl"
}

function put_zsh(    i)
{
	print "#compdef eddyctl"
	print "# SPDX-License-Identifier: BSD-2-Clause"
	print "# Completion of eddyctl(1); made by scripts/gen-tool.awk."
	print "local -a commands words_"
	print "commands=("
	for (i = 1; i <= n_commands; i++)
		printf "\t'%s:%s'\n", command[i], command_brief[i]
	print ")"
	print "words_=(${${words[2,CURRENT-1]}:#-*})"
	print "_eddyctl_pids() {"
	print "\tlocal -a pids"
	print "\tpids=(${(f)\"$(eddyctl list --quiet 2>/dev/null |" \
	    " awk 'NR > 1 { print $1 }')\"})"
	print "\tcompadd -a pids"
	print "}"
	print "if (( $#words_ == 0 )); then"
	print "\t_describe command commands"
	print "\treturn"
	print "fi"
	print "case $words_[1]:$#words_ in"
	print "help:1) _describe command commands ;;"
	print "get:1 | *:1) [[ $words_[1] == run ]] && _command_names ||" \
	    " _eddyctl_pids ;;"
	print "get:*) compadd " list_names("get") " ;;"
	print "set:2) compadd " list_names("set") " ;;"
	print "call:2) compadd " list_names("call") " ;;"
	print "prof:2) compadd start stop dump ;;"
	print "*) _files ;;"
	print "esac"
}

END {
	if (bad)
		exit 1
	add_options()
	take_briefs()
	sort_names()
	read_commands()
	if (tool == "c")
		put_tool_c()
	else if (tool == "bash")
		put_bash()
	else
		put_zsh()
	exit 0
}
