# The front door. `make` alone prints what a learner needs, `make more` the rest.
SHELL := /bin/bash
.SHELLFLAGS := -o pipefail -c
MAKEFLAGS += --no-builtin-rules

# Another checkout's env, which a person has read, leads to libraries that this one lacks.
ifneq ($(RDMA_TOOLS),)
without = $(shell echo "$$$(1)" | tr : '\n' | grep -vF "$$RDMA_TOOLS/" | paste -s -d : -)
export PATH := $(call without,PATH)
export LD_LIBRARY_PATH := $(call without,LD_LIBRARY_PATH)
unexport RDMA_TOOLS BINDGEN_EXTRA_CLANG_ARGS PKG_CONFIG_PATH PKG_CONFIG_SYSROOT_DIR LIBRARY_PATH C_INCLUDE_PATH CPLUS_INCLUDE_PATH
endif

# Where cargo (rustup's, or Ubuntu's cargo-1.NN) and tc are when a person's PATH leaves them out.
export PATH := $(HOME)/.cargo/bin:$(PATH):$(lastword $(sort $(wildcard /usr/lib/rust-1.*/bin))):/usr/sbin:/sbin

# What you type arrives as you typed it: `value` keeps make from expanding $ signs in it, and the shell gets it as a
# variable. Only ARGS becomes part of the shell's line, because it may be several words.
given := blocks client server wire workers log lesson language students to CHANGE HOST NETDEV PCAP PORT REPOSITORY RUNS VARIANT
$(foreach name,$(given),$(if $(value $(name)),$(eval override export $(name) := $$(value $(name)))))
override ARGS := $(value ARGS)
# With ARGS=--timing a run says at its end where the time went, and that begins here.
ifneq ($(filter --timing,$(ARGS)),)
export MAKE_BEGAN := $(shell date +%s.%N)
endif
# Where a lesson runs: in the lab, on the kernel's own driver; on the device in user space, which only needs a compiler; or on
# that device with the learner's own NIC in it, mine-nic/. With on=siw it's the lab again, but RDMA travels in TCP there: iWARP.
# Lesson 20 needs a switch between its nodes, and only the device has one.
on ?= $(if $(filter %-20,$(MAKECMDGOALS)),device,lab)
$(if $(filter 1lab 1device 1mine 1siw,$(words $(on))$(on)),,$(error there is no place called on=$(on). Lessons run with on=lab, on=device, on=mine or on=siw))
of_siw := help lesson-% compare-% play-%
$(if $(filter siw,$(on)),$(if $(filter-out $(of_siw),$(MAKECMDGOALS)),$(error on=siw works with lesson-NN, compare-NN and play-NN only. Leave it out here)))
of_mine := help lesson-% shell compare-% explain-% play-%
$(if $(filter mine,$(on)),$(if $(filter-out $(of_mine),$(MAKECMDGOALS)),$(error on=mine works with lesson-NN, shell, compare-NN, explain-NN and play-NN only. Leave it out here)))
# How much of a run is shown: every line and packet (all), and what the device in user space decides (1); log="1 all" is both.
$(if $(filter-out 1 all,$(log)),$(error there is no log=$(log). Use log=all for every line and packet, log=1 for what the device decides, or log="1 all" for both))
$(if $(and $(filter 1,$(log)),$(filter lab siw,$(on))),$(error log=1 shows what the device in user space decides, so it needs that device: add on=device))

override export target := $(or $(value CARGO_TARGET_DIR),target)
override export bin := $(target)/debug

# Every recipe's shell reads this file first. It leads to what set-up unpacked because this machine doesn't have it. The shell expands BASH_ENV.
export RDMA_ENV := $(if $(filter /%,$(firstword $(target))),,$(CURDIR)/)$(target)/tools/env
export BASH_ENV := $$RDMA_ENV
# The lessons of part three have no programs.
lessons := $(sort $(foreach dir,$(wildcard lessons/[0-9][0-9]_*/Cargo.toml),$(firstword $(subst _, ,$(notdir $(patsubst %/,%,$(dir $(dir))))))))

# $(call build,PACKAGES) builds the programs of the course, and these packages. Everything is built at once so that there's one wait, at the
# beginning, and none in the middle of a lesson. Later on it shows what cargo compiles, and prints nothing if everything is up to date.
# The first time cargo draws how far it is, where there's a terminal to draw on. Common needs libibverbs, and who writes a NIC has only cargo.
course := lab device course wire $(if $(filter nic device docs,$(MAKECMDGOALS)),,common)
cargo = cargo build $(1) $(addprefix -p ,$(course) $(2))
build = if [ -e "$$bin/course" ]; then \
		$(call cargo,$(if $(MAKE_TERMERR),--color always),$(1)) 2>&1 | { grep -v 'Finished.*dev' || true; }; \
	else \
		echo "compiling the course's programs and what they call, once: about a minute on two processors" >&2; \
		$(call cargo,$(if $(MAKE_TERMERR),,-q),$(1)); \
	fi

# For the place where a lesson runs: its program, and where its runs are. Cargo doesn't know the device with the learner's NIC in it,
# so course lays that one out and builds it.
runner = $(patsubst siw,lab,$(on:mine=device-mine-nic))
runs = $(bin:debug=$(patsubst siw,lab,$(on:mine=device/mine-nic)))/runs
# What's recorded with SoftiWARP isn't mistaken for a run with SoftRoCE.
of_driver = $(if $(filter siw,$(on)),-siw)
with_mine = $(if $(filter mine,$(on)),"$$bin"/course nic --device)

# $(call own,LESSON) builds a lesson for this machine's own RDMA device. A machine without cargo runs the program that was
# copied to it, so only one of the two machines needs a compiler.
define own
@if command -v cargo >/dev/null || [ ! -x "$$bin/$(1)" ]; then tools/lab/setup.sh build device; \
	else tools/lab/setup.sh device && echo "there is no cargo here, so this runs $$bin/$(1) as it was built on another machine" >&2; fi
@if command -v cargo >/dev/null; then $(call build,$(1)); fi
endef

# Targets that a learner needs have two #, all others three.
table = sed -n 's/^\(.* \)\?\([a-z0-9%-]*\):.* $(1) /  make \2\t/p' Makefile | sed 's/%/NN/' | expand -t 24

.PHONY: help
help:
	@echo 'Begin with `make lesson-04`. It first gets what it needs. The lessons are $(lessons).'
	@$(call table,##)
	@echo '  make more             list all other targets'

.PHONY: more
more: ### list all other targets
	@$(call table,###)

.PHONY: setup
setup: ### get what the lessons need, and rping and perftest, into target/ (with apt; without it, list what's missing)
	@tools/lab/setup.sh build lab shell

.PHONY: bundle
bundle: ### pack everything that machines of this release need into one file, for a classroom without a network
	@tools/lab/setup.sh bundle

.PHONY: device-bundle
device-bundle: ### build one static program that brings the device to your own CI (docs/ci.md)
	@tools/lab/setup.sh cargo
	@tools/device/bundle.sh

# Lessons 09 and 12 are about many clients, and lesson 13 about a ring of the server and its clients. (Other lessons also take `workers=`.)
lesson-09: export workers ?= 3
# So is lesson 11, whose plain run loses a request; with an empty `wire=` nothing gets lost.
lesson-11: export workers ?= 2
lesson-11: export wire ?= $(if $(client)$(server),,drop 1st "UD Send Only")
lesson-12: export workers ?= 2
lesson-13: export workers ?= 2
# Lesson 20 begins with a switch whose queue is short, and with nothing that slows a sender down.
lesson-20: export workers ?= 2
lesson-20: export wire ?= link 1 Gbit/s 5 us; queue 8 KB
# The puzzle's programs are meant to fail, so make shouldn't report that as an error.
lesson-07: may_fail = $(and $(findstring --puzzle,$(client) $(server)),|| [ $$? -eq 1 ])

.PHONY: $(lessons:%=lesson-%)
$(lessons:%=lesson-%): lesson-%: ## run lesson NN on emulated machines [client="OPTIONS"] [server="OPTIONS"] [wire="RULES"] [log=all] [ARGS=--timing] [on=device|mine|siw]
	@tools/lab/setup.sh build $(filter lab,$(on)) $(if $(of_driver),lab siw)
	@$(call build,$@)
	@$(with_mine)
	@$(if $(filter all,$(log)),RUST_LOG="$${RUST_LOG:-info}") "$$bin"/$(runner) run $@ --clients="$${workers:-1}" --server-args="$$server" --client-args="$$client" \
		$${wire:+--wire="$$wire"} $(if $(filter all,$(log)),--all) $(if $(filter 1,$(log)),--log) \
		$(if $(filter mine,$(on)),--grace=5) $(if $(of_driver),--driver=siw --name=$*-siw) $(ARGS) $(may_fail)

# On one machine of the lab the learner's NIC takes the driver's place, and with it the driver's UDP port. The other machine keeps rdma_rxe.
mine ?= client
$(if $(filter 1client 1server,$(words $(mine))$(mine)),,$(error there is no side called mine=$(mine). Your own NIC can be mine=client or mine=server))
on_my_nic = $(if $(filter $(mine),$(1)),rdma link delete rxe0; rmmod rdma_rxe; NIC_NAME=rxe0 device-mine-nic run --address $(2) --)
# The ring has three more members, which use rdma_rxe.
meet-13: clients := 3
.PHONY: $(lessons:%=meet-%)
$(lessons:%=meet-%): meet-%: ### run lesson NN in the lab between your own NIC and rdma_rxe; lesson 13 with three clients [mine=server]
	@tools/lab/setup.sh build lab
	@$(call build,lesson-$*)
	@"$$bin"/course nic --device
	@"$$bin"/lab exec --name=$@ --server='$(call on_my_nic,server,10.47.91.1) lesson-$* server -n $(or $(clients),1)' \
		--client='$(call on_my_nic,client,10.47.91.2) lesson-$* client -a 10.47.91.1' \
		$(foreach more,$(wordlist 2,$(or $(clients),1),1 2 3 4 5 6 7 8),--node='client-$(more)=lesson-$* client -a 10.47.91.1')

# What a real protocol does with all this. Naming the modules in the commands brings them to the machines.
.PHONY: nvme
nvme: ## use a disk of the other machine over RDMA, with the kernel's NVMe over Fabrics, in the lab [blocks=N: write and check N random blocks as well] [wire="RULES"]
	@tools/lab/setup.sh build lab nvme
	@$(call build)
	@"$$bin"/lab exec --name=$@ --deadline=600 $${wire:+--wire="$$wire"} \
		--server='modprobe brd rd_nr=1 rd_size=1024; modprobe nvmet-rdma; exec tools/lab/examples/nvme_target.sh /dev/ram0 10.47.91.1' \
		--client="modprobe nvme-rdma; exec tools/lab/examples/nvme_host.sh 10.47.91.1 $$blocks" \
		--fault='on server kill $$(cat /run/program.pid) when the host has ended'

.PHONY: meet
meet: ### run any two programs between your own NIC and rdma_rxe: server="rping -s -C 3" client="rping -c -a server -C 3" [mine=server]
	@tools/lab/setup.sh build lab
	@$(call build)
	@"$$bin"/course nic --device
	@"$$bin"/lab exec --name=$@ --server="$(call on_my_nic,server,10.47.91.1) $$server" --client="$(call on_my_nic,client,10.47.91.2) $$client"

.PHONY: $(lessons:%=break-%)
$(lessons:%=break-%): break-%: ## break lesson NN on purpose, and see what happens [CHANGE=name; without it, list the changes] [ARGS=--quiet] [on=device]
	@tools/lab/setup.sh build $(if $(CHANGE),$(on:device=))
	@$(call build)
	@"$$bin"/course break $* $${CHANGE:+"$$CHANGE"} --on=$(on) $(ARGS)

# The learner's own program is judged on the device, which takes a moment, or with on=lab on the kernel's own driver.
step: on = device
step: refused = $(and $(filter lab,$(on)),$(wildcard mine/mine.py))
# `make begin device` begins a NIC of your own, and needs only cargo.
begins_nic := $(filter device,$(filter-out begin,$(MAKECMDGOALS)))
.PHONY: begin step hint solution
begin: ## begin a program of your own in mine/ and write it step by step [language=c|python]; `make begin device` begins a NIC in mine-nic/
	@tools/lab/setup.sh $(if $(begins_nic),cargo,build) $(if $(filter python,$(language)),python)
	@$(call build)
	@"$$bin"/course $(if $(begins_nic),nic --begin || [ $$? -eq 1 ],begin $${language:+--language="$$language"})

step: ## judge the next step of your own program, and show it [STEP=01-2] [ARGS=--watch|--task] [on=lab]
	@$(if $(refused),$(error the lab's machines have no Python, so a program in Python is judged on the device. Leave on=lab out: make step))
	@tools/lab/setup.sh build $(on:device=) $(if $(wildcard mine/mine.py),python)
	@$(call build)
	@"$$bin"/course step $${STEP:+"$$STEP"} --on=$(on) $(ARGS)

.PHONY: device nic
device: $(if $(filter begin,$(MAKECMDGOALS)),begin)
	@$(if $(filter begin,$(MAKECMDGOALS)),:,echo 'usage: make begin device' >&2; exit 2)

nic: ## judge the NIC that you write, and show the first hole you haven't filled yet [ARGS="--watch --hint"]
	@tools/lab/setup.sh cargo
	@$(call build)
	@"$$bin"/course nic $(ARGS)

hint: ### show one more hint for the step [STEP=01-2 ARGS=--all]
	@tools/lab/setup.sh build
	@$(call build)
	@"$$bin"/course hint $${STEP:+"$$STEP"} $(ARGS)

solution: ### show how the lesson does the step, or the reference in your language [STEP=01-2] [ARGS=--yes]
	@tools/lab/setup.sh build
	@$(call build)
	@"$$bin"/course solution $${STEP:+"$$STEP"} $(ARGS)

.PHONY: grade
grade: ### judge programs that were handed in, each in a sandbox: students="FOLDER ...", like mine/ or repositories that contain one [lesson=NN] [limit=SECONDS] [to=FOLDER]
	@$(if $(value students),,$(error usage: make grade students="FOLDER ..."))
	@tools/lab/setup.sh build grade python
	@$(call build,$(lessons:%=lesson-%))
	@"$$bin"/course grade $${lesson:+--lesson="$$lesson"} $${limit:+--limit="$$limit"} $${to:+--to="$$to"} $$students

.PHONY: next
next: ## show where you are in the course, what comes next, and how long it takes
	@tools/lab/setup.sh build
	@$(call build)
	@"$$bin"/course next

.PHONY: try
try: ## list the exercises, and which of them you've solved
	@tools/lab/setup.sh build
	@$(call build)
	@"$$bin"/course try

# Exercises are judged on the device, which takes a moment, or with on=lab on the kernel's own driver.
try-%: on = device
try-%: ### list the exercises of lesson NN; with NN-NAME, begin that one or judge your answer [ARGS=--watch] [on=lab]
	@tools/lab/setup.sh build $(on:device=)
	@$(call build)
	@"$$bin"/course try $* --on=$(on) $(ARGS)

reset-%: ### throw away your answer to the exercise NN-NAME
	@tools/lab/setup.sh build
	@$(call build)
	@"$$bin"/course reset $*

.PHONY: lab-shell
lab-shell: ### open a shell on the client machine, and see the packets as they pass [server="COMMAND"; without it, rping] [wire="RULES"]
	@tools/lab/setup.sh build lab shell
	@$(call build,$(lessons:%=lesson-%))
	@"$$bin"/lab shell $${server:+--server="$$server"} --wire="$$wire"

.PHONY: shell
shell: ### open a shell in which RDMA programs run in the lab, or with on=device on the device in user space [server="COMMAND"] [on=mine]
ifneq ($(on),lab)
	@tools/lab/setup.sh build shell
	@$(call build,$(lessons:%=lesson-%))
	@$(with_mine)
	@"$$bin"/$(runner) shell $${server:+--server="$$server"} $${log:+--log}
else
	@$(MAKE) --no-print-directory lab-shell
endif

.PHONY: $(lessons:%=server-%)
$(lessons:%=server-%): server-%: ### run the server of lesson NN on this machine's own RDMA device [ARGS="OPTIONS"]
	$(call own,lesson-$*)
	@unset LD_LIBRARY_PATH; "$$bin"/lesson-$* server $(ARGS)

.PHONY: $(lessons:%=client-%)
$(lessons:%=client-%): client-%: ### run the client of lesson NN on this machine's own RDMA device HOST=server [ARGS="OPTIONS"]
	@$(if $(HOST),,$(error which server? Name the machine that runs `make server-$*`: make $@ HOST=ADDRESS [ARGS="OPTIONS"]))
	$(call own,lesson-$*)
	@unset LD_LIBRARY_PATH; "$$bin"/lesson-$* client -a "$$HOST" $(ARGS)

.PHONY: $(lessons:%=capture-%)
$(lessons:%=capture-%): capture-%: ### record the packets of lesson NN on this machine's network [NETDEV=interface], until Ctrl-C
	@tools/lab/capture.sh $* $${NETDEV:+"$$NETDEV"}

.PHONY: doctor
doctor: ## check what this machine has for the lessons, what it lacks, and how to fix that
	@tools/lab/doctor.sh

# These read the lesson's last run, or the capture that PCAP= names.
compare-% play-% explain-%: export run = $(or $(value PCAP),$(runs)/$*$(of_driver)/wire.pcapng)
define ran
@[ -e "$$run" ] || { echo "There is no $$run, so there is no run to look at. Make one with 'make lesson-$* on=$(on)'. If the lesson ran on the device: make $@ on=device. If you have a capture of your own: make $@ PCAP=FILE" >&2; exit 2; }
endef
# VARIANT is the part after the dash in a bundled capture's name, for example multi-packet. Without it, the run's options decide.
.PHONY: $(lessons:%=compare-%)
$(lessons:%=compare-%): compare-%: ## show how the last run of lesson NN differs from its capture [on=device|mine|siw] [PCAP=FILE] [VARIANT=name]
	@$(if $(of_driver),[ -n "$(wildcard captures/over_tcp/$*_*.pcapng)" ] || { echo 'There is no bundled run of lesson $* over TCP. Of lesson 05 there is: make lesson-05 on=siw; make compare-05 on=siw' >&2; exit 2; })
	$(ran)
	@tools/lab/setup.sh build
	@$(call build)
	@"$$bin"/wire compare "$$run" "captures/$(if $(of_driver),over_tcp/)$(notdir $(wildcard lessons/$*_*))$${VARIANT:+-$$VARIANT}.pcapng" \
		$(if $(VARIANT)$(of_driver),,--variant) $(ARGS)

.PHONY: $(lessons:%=play-%)
$(lessons:%=play-%): play-%: ## write a web page that plays the last run of lesson NN, next to that run [on=device|mine|siw] [PCAP=FILE]
	$(ran)
	@tools/lab/setup.sh build
	@$(call build)
	@"$$bin"/wire play "$$run" --lesson lessons/$*_* -o "$$(dirname "$$run")/play.html"

.PHONY: $(lessons:%=explain-%)
$(lessons:%=explain-%): explain-%: ## explain what went wrong in the last run of lesson NN [on=device|mine] [PCAP=FILE]
	$(ran)
	@tools/lab/setup.sh build
	@$(call build)
	@"$$bin"/wire explain "$$run" $(ARGS) || [ $$? = 1 ]

lesson-% break-% server-% client-% capture-% compare-% explain-% play-%:
	@echo 'There is no lesson $* to run. The lessons with programs are: $(lessons)' >&2; exit 2

.PHONY: test
test: ### build everything and run every test
	@tools/lab/setup.sh build lab nvme shell test python grade
	cargo build --workspace
	@# Most of them wait most of the time, so there are more at a time than processors. Those of course and device wait longest; the lab's
	@# machines are at work. All come to their end, whatever fails.
	@status=0; \
	RUST_TEST_THREADS=$${RUST_TEST_THREADS:-$$(($$(nproc) + 2))} \
		cargo test --workspace --exclude course --exclude device --no-fail-fast || status=$$?; \
	RUST_TEST_THREADS=$${RUST_TEST_THREADS:-$$(($$(nproc) + 6))} cargo test -p course -p device --no-fail-fast || status=$$?; \
	exit $$status

.PHONY: field-guide
field-guide: ### try every change of every lesson again, and list those that don't come out as their pages say (some minutes)
	@tools/lab/setup.sh build lab shell python
	@$(call build)
	@"$$bin"/course prove $(ARGS)

# These tests take minutes, and most of them show in more depth what `make test` has shown. They're ignored tests in groups, each
# with its arguments for cargo; one round of the benchmarks with tiny counts, to see that they still run; and the field guide. The lab's
# test of a Python program isn't among them, because set-up gets no pyverbs: cargo test -p lab --test all python -- --ignored
of-lessons := -p lab --test all lessons -- --skip soak --skip sweep --skip over_tcp
of-soak := -p lab --test all soak -- --nocapture
of-siw := -p lab --test all over_tcp -- --nocapture
of-sweep := -p lab --test all sweep -- --nocapture
of-machines := -p lab --test all machines -- --skip python
of-device := -p device --test all -- --skip kernel --skip fresh --nocapture
of-fresh := -p device --test all fresh -- --nocapture
of-kernel := -p device --test all kernel -- --nocapture
of-course := -p course --test all --
of-nic := --release -p nic -p workbench --test all --
of-docs := -p xtask docs -- --nocapture
long := lessons soak sweep siw machines device kernel course nic docs

.PHONY: test-long
test-long: $(or $(group:%=long-%),$(long:%=long-%) long-bench long-changes) ### run the tests that take an hour, or one group of them [group=NAME]: lessons soak sweep siw machines device kernel course nic docs bench changes fresh

.PHONY: long-groups $(long:%=long-%) long-fresh long-bench long-changes
long-groups:
	@echo $(long) bench changes

$(long:%=long-%) long-fresh: long-%:
	@tools/lab/setup.sh build lab nvme shell test python grade $(filter siw,$*)
	cargo build --workspace --bins --examples
	cargo test $(of-$*) --ignored

long-bench:
	@tools/lab/setup.sh build lab shell test python grade
	cargo build --workspace --bins --examples
	"$$bin"/bench --smoke

long-changes: field-guide

long-%:
	@echo 'There is no group $*. The groups are: $(long) bench changes fresh' >&2; exit 2

.PHONY: bench
bench: ### measure everything against its reference, and write docs/benchmarks.md (ten minutes; leave the machine alone meanwhile)
	@tools/lab/setup.sh build lab shell test python grade
	cargo build --workspace --bins --examples
	cargo build --release -p lesson-10 -p lesson-12 -p bench -p wire --bins --examples
	@"$$bin"/bench --keep

# Needs a nightly compiler and cargo-fuzz, which set-up doesn't get. Whatever it finds is in tools/wire/fuzz/artifacts.
.PHONY: fuzz
fuzz: ### look for captures that make the wire tools panic [RUNS=number]
	@command -v cargo-fuzz >/dev/null || { echo 'fuzzing needs: rustup toolchain install nightly && cargo install cargo-fuzz' >&2; exit 1; }
	mkdir -p tools/wire/fuzz/corpus/captures
	cd tools/wire && cargo +nightly fuzz run -s none captures fuzz/corpus/captures ../../captures -- -max_len=8192 -runs="$${RUNS:-1000000}"

# The documentation also shows private items, because a reader wants to know how it works inside.
.PHONY: check
check: ### formatting, lints and documentation, warnings as errors
	@tools/lab/setup.sh build test check
	cargo fmt --all --check
	cargo clippy --locked --workspace --all-targets -- -D warnings
	RUSTDOCFLAGS='-D warnings -A rustdoc::private_intra_doc_links' cargo doc --workspace --no-deps --document-private-items
	RUSTDOC='$(CURDIR)/tools/xtask/rustdoc.sh' cargo test -q --locked --doc -p common
	shellcheck --exclude=SC2187 tools/book/*.sh tools/device/*.sh tools/device/tests/*.sh tools/lab/*.sh tools/lab/guest/*.sh tools/lab/examples/*.sh tools/xtask/*.sh captures/*.sh .ci/run
	cargo run -q -p xtask -- docs --check

.PHONY: docs
docs: ### renew the generated parts of docs/: packet tables, logs, pictures, differences between lessons
	@$(call build,xtask)
	@"$$bin"/xtask docs

.PHONY: site
site: ### build the course as a book, with every run in it to play, into target/site [REPOSITORY=URL of the forge]
	@tools/lab/setup.sh build site
	@tools/book/tools.sh
	@tools/lab/setup.sh wasm || true
	@tools/book/program.sh
	@$(call build,xtask)
	@"$$bin"/xtask site

.PHONY: serve
serve: site ### serve the book to this machine: http://127.0.0.1:3000 [PORT=number]
	@node tools/book/serve.mjs "$$target/site" "$${PORT:-3000}"

.PHONY: test-site
test-site: site ### test every page of the book in a real browser
	@tools/lab/setup.sh site browser
	node --test $(wildcard tools/book/test/*.test.mjs)

.PHONY: picture
picture: ### retake the picture of the player in README.md; look at it before you commit it
	@tools/lab/setup.sh build site browser
	@$(call build)
	@"$$bin"/wire play captures/04_rdma_write.pcapng --lesson lessons/04_rdma_write -o "$$target/picture.html"
	@node tools/book/picture.mjs "file://$${RDMA_ENV%/tools/env}/picture.html" tools/book/player.png 1240 820 light ArrowDown

.PHONY: screenshots
screenshots: ### retake the pictures of Wireshark that show an earlier capture; look at each before you commit it
	@tools/xtask/screenshots.sh

.PHONY: record-nvme
record-nvme: nvme ### renew the recorded run of `make nvme`
	cp "$$target"/lab/runs/nvme/wire.pcapng captures/protocols/nvme.pcapng
	cargo run -q -p xtask -- docs

.PHONY: record
record: $(if $(lesson),,record-nvme) ### run every lesson in the lab, or one [lesson=NN], or the one over TCP [lesson=siw], and renew the files in captures/
	@tools/lab/setup.sh build lab shell $(filter siw,$(value lesson))
	cargo build --workspace
	cargo run -q -p xtask -- record $${lesson:+"$$lesson"}
	$(if $(filter siw,$(value lesson)),,"$$bin"/course prove --keep $${lesson:+"$$lesson"})

.PHONY: wireshark-profile
wireshark-profile: ### install columns, colors and filter buttons for Wireshark: the profile "rdma"
	@captures/install-profile.sh

.PHONY: clean
clean: ### remove everything that make has put here: programs, tools, the lab's machines and their results
ifdef CARGO_TARGET_DIR
	@# Other projects may use the same folder.
	cargo clean $(addprefix -p ,bench common course device judge lab nic pair roce run testkit wire workbench xtask $(lessons:%=lesson-%))
	rm -rf -- "$$target"/{book,bundle,captures,course,device,grade,lab,picture.html,site,tools} "$$target"/rdma-*.tar.gz
else
	rm -rf target
endif
	@if grep -qs 'replace-with = "bundle"' .cargo/config.toml; then rm -r .cargo; fi
