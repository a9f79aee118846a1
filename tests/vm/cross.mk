# SPDX-License-Identifier: BSD-2-Clause
# cross.mk - the library and the programs of the arm64 machines.
#
#   make -f cross.mk SRC=folder of the sources OUT=folder of the results
#
# A make of its own: configure refuses to build beside a folder that has been
# configured itself.  Flags are those of configure.ac, which say why.
SRC = .
OUT = .
AWK = awk
CROSS = aarch64-linux-gnu-
CROSS_CC = $(CROSS)gcc

base = -std=gnu17 -D_GNU_SOURCE -O2 -g1 -pthread \
	-include $(OUT)/eddy_config.h -I$(SRC) -I$(OUT) -I$(SRC)/include
lib_flags = $(base) -fPIC -fvisibility=hidden -ftls-model=initial-exec \
	-fno-builtin-malloc -fno-builtin-calloc -fno-builtin-realloc \
	-fno-builtin-free -fno-builtin-aligned_alloc \
	-fno-builtin-posix_memalign -fno-builtin-memalign \
	-fno-semantic-interposition -mbranch-protection=standard
program_flags = $(base) -fno-builtin

made = $(OUT)/eddy_config.h $(OUT)/lib/ctl/ctl_gen.h \
	$(OUT)/lib/ctl/ctl_gen.inc $(OUT)/lib/ctl/ctl_gen_names.h \
	$(OUT)/lib/ctl/ctl_gen_names.inc
headers = $(made) $(wildcard $(SRC)/lib/*/*.h $(SRC)/numa/*.h \
	$(SRC)/include/*/*.h $(SRC)/tests/*.h $(SRC)/tests/vm/*.h \
	$(SRC)/stress/*.h)

# lib/urcu is a library of its own, and needs liburcu for arm64.
lib_sources = $(filter-out $(SRC)/lib/urcu/%,$(wildcard $(SRC)/lib/*/*.c)) \
	$(wildcard $(SRC)/numa/*.c $(SRC)/lib/arch/aarch64/*.S)
lib_objects = $(patsubst $(SRC)/%,$(OUT)/%.o,$(lib_sources))

tests = $(notdir $(basename $(wildcard $(SRC)/tests/front_*.c \
	$(SRC)/tests/env_*.c)))
guests = churn huge_arenas khugepaged limits node_arenas numa_pages policy
programs = $(addprefix $(OUT)/,$(tests) $(guests) arch_sections mixed moves)

all: $(OUT)/libeddy.so $(programs)

$(OUT)/eddy_config.h:
	mkdir -p $(@D)
	printf '#define EDDY_BUILD_CONF ""\n#define EDDY_VERSION "0"\n' >$@

table = $(SRC)/lib/ctl/ctl.tab
gen = $(SRC)/scripts/gen-names.awk $(SRC)/scripts/gen-ctl.awk

$(OUT)/lib/ctl/ctl_gen.h: out = h
$(OUT)/lib/ctl/ctl_gen.inc: out = c
$(OUT)/lib/ctl/ctl_gen_names.h: out = names-h
$(OUT)/lib/ctl/ctl_gen_names.inc: out = names-c
$(OUT)/lib/ctl/ctl_gen%: $(table) $(gen)
	mkdir -p $(@D)
	$(AWK) -v out=$(out) $(addprefix -f ,$(gen)) $(table) >$@.tmp
	mv $@.tmp $@

$(lib_objects): $(OUT)/%.o: $(SRC)/% $(headers)
	@mkdir -p $(@D)
	$(CROSS_CC) $(lib_flags) -c $< -o $@

$(OUT)/libeddy.so: $(lib_objects) $(SRC)/lib/eddy.map
	$(CROSS_CC) -shared -o $@ $(lib_objects) -Wl,-soname,libeddy.so.0 \
		-Wl,-z,nodelete -Wl,-z,now -Wl,-z,relro -Wl,-z,defs \
		-Wl,--version-script=$(SRC)/lib/eddy.map \
		-Wl,--defsym=pthread_create=eddy_thread_create \
		-Wl,--defsym=thrd_create=eddy_thread_create_c11

$(addprefix $(OUT)/,$(tests)): $(OUT)/%: $(SRC)/tests/%.c $(headers)
	$(CROSS_CC) $(program_flags) $< -o $@

$(addprefix $(OUT)/,$(guests)): $(OUT)/%: $(SRC)/tests/vm/%.c $(headers)
	$(CROSS_CC) $(program_flags) $< -o $@

$(OUT)/arch_sections: $(SRC)/tests/arch_sections.c \
		$(SRC)/lib/arch/aarch64/sections.S $(headers)
	$(CROSS_CC) $(program_flags) $(filter %.c %.S,$^) -o $@

$(OUT)/moves: $(SRC)/tests/vm/moves.c $(SRC)/lib/os/os.c $(headers)
	$(CROSS_CC) $(program_flags) $(filter %.c,$^) -o $@

mixed_sources = $(addprefix $(SRC)/stress/,mixed.c ledger.c rig.c)
$(OUT)/mixed: $(mixed_sources) $(headers)
	$(CROSS_CC) $(program_flags) $(mixed_sources) -o $@

.PHONY: all
