// Command peers measures HTCondor, Slurm and Grid Engine beside Roost on this machine.
// Run it with make bench-peers. It measures how soon a job starts, how many jobs finish
// in a second, how fast submits are accepted, what the central daemons need with
// thousands of queued jobs, what each running job needs, how long it takes to match jobs
// to ten thousand machines, and how soon a killed queue daemon is back. Everything is
// measured in one run, in rounds in which the systems take turns, so that other load on
// this machine affects all alike; the ratios are what matters.
//
// Each system runs in namespaces of its own (processes, network, mounts, host name). Its
// network is a loopback and an address that is connected to nothing; its processes end
// with the namespace however this program ends, and its mounts with them. The other
// systems live in the Debian that install.sh makes, as 16 slots each, and jobs there are
// an ordinary user's; Roost is what "roost up" makes of this machine for root, with its
// sandboxes. The program runs itself inside (-inside) and sends that process orders, one
// line of JSON each, so that every command is run and timed from within.
//
// The settings of the other systems are in conf, each with its reason: what their manuals
// advise for short jobs, or with -stock their own defaults.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// benchOptions is the options of the command line.
type benchOptions struct {
	root     string   // the Debian with the other systems
	out      string   // directory for the results
	systems  []string // in the order of the table
	measures []string // names of measurements; empty: all
	rounds   int
	sizes    workSizes
	stock    bool
	limit    time.Duration // of one measurement of one system
}

// workSizes is the amount of work in each measurement.
type workSizes struct {
	Latency  int   `json:"latency"`  // jobs in a round
	Batch    int   `json:"batch"`    // tasks of the array
	Loop     int   `json:"loop"`     // commands of the shell loop
	Queued   []int `json:"queued"`   // numbers of waiting jobs
	Restart  int   `json:"restart"`  // jobs that wait while the daemon is killed
	Machines int   `json:"machines"` // machines to match
	Jobs     int   `json:"jobs"`     // jobs to match with the machines
	Kinds    int   `json:"kinds"`    // kinds of these jobs
	Matches  int   `json:"matches"`  // repetitions of the matching
}

// The sizes of a full run and of a quick trial.
var (
	fullSizes = workSizes{Latency: 12, Batch: 300, Loop: 200, Queued: []int{10_000, 100_000}, Restart: 10_000,
		Machines: 10_000, Jobs: 1000, Kinds: 100, Matches: 3}
	quickSizes = workSizes{Latency: 4, Batch: 100, Loop: 30, Queued: []int{1000}, Restart: 500, Machines: 500,
		Jobs: 200, Kinds: 20, Matches: 1}
)

func main() {
	if inside := argAfterWord("-inside"); inside != nil {
		os.Exit(runFirstProcess(inside))
	}
	if serve := argAfterWord("-serve"); serve != nil {
		os.Exit(serveAgent(serve))
	}
	opt, err := parseOptions(os.Args[1:])
	if err == flag.ErrHelp {
		os.Exit(0)
	}
	if err == nil {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		err = runComparison(ctx, opt)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "peers:", err)
		os.Exit(1)
	}
}

// argAfterWord returns the argument after word, if this program started itself with it.
func argAfterWord(word string) []string {
	if len(os.Args) > 1 && os.Args[1] == word {
		return os.Args[2:]
	}
	return nil
}

func parseOptions(args []string) (benchOptions, error) {
	var opt benchOptions
	set := flag.NewFlagSet("peers", flag.ContinueOnError)
	set.StringVar(&opt.root, "root", defaultRoot(), "the `directory` of the Debian with the other systems; from $PEERS")
	set.StringVar(&opt.out, "out", "build/peers", "write the results into this `directory`")
	small := set.Bool("quick", false, "small sizes and one round: to try things, not to quote")
	names := set.String("systems", strings.Join(systemNames(), ","), "measure these `systems`")
	only := set.String("only", "", "make these `measures` alone: "+strings.Join(measureNames(), " "))
	rounds := set.Int("rounds", 0, "so many `rounds`; 3, and 1 with -quick")
	queued := set.String("queued", "", "`numbers` of jobs that wait, with commas between, instead of 10000,100000")
	machines := set.Int("machines", 0, "match with that `number` of machines instead of 10000")
	set.BoolVar(&opt.stock, "stock", false, "leave the other systems at their own defaults")
	set.DurationVar(&opt.limit, "limit", 15*time.Minute, "no measure of one system may take longer")
	if err := set.Parse(args); err != nil {
		return opt, err
	}
	if set.NArg() > 0 {
		return opt, fmt.Errorf("%q is no flag; see -help", set.Arg(0))
	}
	opt.sizes, opt.rounds = fullSizes, 3
	if *small {
		opt.sizes, opt.rounds = quickSizes, 1
	}
	if *rounds > 0 {
		opt.rounds = *rounds
	}
	if *machines > 0 {
		opt.sizes.Machines = *machines
	}
	if *queued != "" {
		opt.sizes.Queued = nil
		for word := range strings.SplitSeq(*queued, ",") {
			n, err := strconv.Atoi(word)
			if err != nil || n < 1 {
				return opt, fmt.Errorf("-queued: %q is no number of jobs", word)
			}
			opt.sizes.Queued = append(opt.sizes.Queued, n)
		}
	}
	var err error
	if opt.systems, err = parseChoices("-systems", *names, systemNames()); err == nil {
		opt.measures, err = parseChoices("-only", *only, measureNames())
	}
	return opt, err
}

// parseChoices reads a list of words, which must all be in a list of choices.
func parseChoices(name, text string, of []string) ([]string, error) {
	if text == "" {
		return nil, nil
	}
	words := strings.Split(text, ",")
	for _, word := range words {
		if !slices.Contains(of, word) {
			return nil, fmt.Errorf("%s: nothing is called %q; there are %s", name, word, strings.Join(of, ", "))
		}
	}
	return words, nil
}

// defaultRoot returns where install.sh installs the Debian.
func defaultRoot() string {
	if dir := os.Getenv("PEERS"); dir != "" {
		return dir
	}
	if dir := os.Getenv("XDG_CACHE_HOME"); dir != "" {
		return filepath.Join(dir, "roost-peers")
	}
	return "/var/tmp/roost-peers"
}
