package master

import (
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/roost-batch/roost"
)

// Args are the arguments from which ParseUpArgs reads the options.
func (o UpOptions) Args() []string {
	return []string{"--dir", o.Dir, "--nodes", fmt.Sprint(o.Nodes), "--cpus", fmt.Sprint(int64(o.CPUs)),
		"--memory", fmt.Sprint(int64(o.Memory)), fmt.Sprintf("--desktop=%t", o.Desktop),
		fmt.Sprintf("--no-web=%t", o.NoWeb), "--dns", o.DNS,
		fmt.Sprintf("--quiet=%t", o.Stdout == nil)}
}

// ParseUpArgs reads options as Args writes them. The text about the pool goes to the
// standard output.
func ParseUpArgs(args []string) (opt UpOptions, err error) {
	f := flag.NewFlagSet("up", flag.ContinueOnError)
	f.SetOutput(io.Discard) // what it prints is in the error, too
	f.StringVar(&opt.Dir, "dir", "", "")
	f.IntVar(&opt.Nodes, "nodes", 1, "")
	cpus := f.Int64("cpus", 0, "")
	memory := f.Int64("memory", 0, "")
	f.BoolVar(&opt.Desktop, "desktop", false, "")
	f.BoolVar(&opt.NoWeb, "no-web", false, "")
	f.StringVar(&opt.DNS, "dns", "", "")
	quiet := f.Bool("quiet", false, "")
	if err := f.Parse(args); err != nil || f.NArg() > 0 {
		return opt, fmt.Errorf("%w: up %q: %v", roost.Usage, args, err)
	}
	opt.CPUs, opt.Memory, opt.Stdout = roost.MilliCPU(*cpus), roost.Bytes(*memory), os.Stdout
	if *quiet {
		opt.Stdout = nil
	}
	return opt, nil
}
