# Builds a game: its Makefile names NAME, TITLE, MODULES, perhaps ASSEMBLY and COLOUR, and includes this file (README.md).
# Writes $(OUT)/NAME.gb and NAME.sym; everything else goes to a new temporary folder that is removed at the end.
# SDCC 4.2.0 gives the ROMs of the repository bit for bit; another version gives ROMs that differ.

KIT := $(dir $(abspath $(lastword $(MAKEFILE_LIST))))
SRC := $(dir $(abspath $(firstword $(MAKEFILE_LIST))))
OUT ?= $(SRC)..
PYTHON ?= python3
CFLAGS := -msm83 --opt-code-speed --max-allocs-per-node 10000 --std-c11 --Werror
LDFLAGS := -msm83 --no-std-crt0 --nostdlib --code-loc 0x0380 --data-loc 0xC0A0

.PHONY: all
all:
	@set -e; build=$$(mktemp -d); trap 'rm -rf "$$build"' EXIT; \
	for folder in $(KIT) $(SRC); do \
	  for kind in c h s py; do \
	    for file in $$folder*.$$kind; do [ ! -e $$file ] || cp $$file $$build; done; \
	  done; \
	done; \
	cd $$build; \
	$(PYTHON) draw_art.py .; \
	for module in crt0 $(ASSEMBLY); do sdasgb -o $$module.rel $$module.s; done; \
	for module in $(MODULES); do sdcc $(CFLAGS) -c $$module.c; done; \
	sdcc $(LDFLAGS) -o $(NAME).ihx $(addsuffix .rel,crt0 $(ASSEMBLY) $(MODULES)); \
	$(PYTHON) make_rom.py $(if $(COLOUR),cgb,dmg) $(TITLE) $(NAME).ihx $(NAME).noi $(NAME).gb $(NAME).sym; \
	mv $(NAME).gb $(NAME).sym $(abspath $(OUT))/; \
	echo "$(abspath $(OUT))/$(NAME).gb"
