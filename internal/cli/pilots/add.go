package pilots

import (
	"fmt"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/cli/admin"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/provision"
	"github.com/roost-batch/roost/internal/provision/provider"
)

// addProvider adds a provider to the user's file, after a trial.
func addProvider(c *frame.Invocation, args []string) error {
	s, err := settingsFromFlags(c, args[0])
	if err != nil {
		return err
	}
	full := s.WithDefaults()
	if problems := full.Check(); len(problems) > 0 {
		p := problems[0]
		return frame.WithHint(frame.UsageErrorf("%s: %s", strings.ReplaceAll(p.Setting, "_", "-"), p.Text), p.Remedy)
	}
	p, err := findPlaces(c)
	if err != nil {
		return err
	}
	list, err := p.load()
	if err != nil {
		return err
	}
	for _, other := range list {
		if other.Name == s.Name {
			return frame.KindErrorf(roost.Conflict, "%s: there is a provider %q already", p.file, s.Name)
		}
	}
	if !c.Flag("no-trial") {
		if err := provision.TrySubmit(&full); err != nil {
			return frame.WithHint(err, "nothing was added; with --no-trial it is added all the same")
		}
	}
	if err := config.AddPilotProvider(p.file, s); err != nil {
		return err
	}
	started := false
	if !c.Flag("no-start") && !provision.IsRunning(p.dir) {
		if err := startInBackground(c, p); err != nil {
			return frame.WithHint(err, "the provider was added; start the provisioner yourself: roost pilots run")
		}
		started = true
	}
	d, err := ask(c, "list", s.Name)
	if err != nil {
		return err
	}
	if c.WantsJSON() {
		return printJSON(c, d, s.Name)
	}
	fmt.Fprintf(c.Stdout, "provider %s is added to %s\n", s.Name, p.file)
	if started {
		fmt.Fprintf(c.Stdout, "the provisioner has started; its log is %s\n", p.logFile())
	}
	return nil
}

// settingsFromFlags reads the settings of a new provider.
func settingsFromFlags(c *frame.Invocation, name string) (*provider.Settings, error) {
	s := &provider.Settings{Name: name, Kind: provider.Kind(c.StringFlag("kind")),
		NodesEach: c.CountFlag("nodes-each"), MaxPilots: c.CountFlag("max-pilots"),
		MaxQueued:    c.CountFlag("max-queued"),
		MaxNodeHours: c.Flags.Float64("max-node-hours"), WithoutWalltime: c.Flag("tasks-without-walltime"),
		Options: c.StringsFlag("option"), Via: strings.Fields(c.StringFlag("via")),
		Directory: c.StringFlag("directory"), Program: c.StringFlag("program"), Before: c.StringFlag("before"),
		After: c.StringFlag("after")}
	var err error
	usage := func(flag string, e error) {
		if err == nil && e != nil {
			err = frame.UsageErrorf("--%s: %v", flag, e)
		}
	}
	if c.IsFlagSet("walltime") {
		var e error
		s.Walltime, e = roost.ParseDuration(c.StringFlag("walltime"))
		usage("walltime", e)
	}
	if c.IsFlagSet("idle") {
		var e error
		s.Idle, e = roost.ParseDuration(c.StringFlag("idle"))
		usage("idle", e)
	}
	r := &s.Node.Resources
	if c.IsFlagSet("cpus") {
		var e error
		r.CPU, e = admin.ParseCores(c.StringFlag("cpus"))
		usage("cpus", e)
	}
	for flag, to := range map[string]*roost.Bytes{"memory": &r.Memory, "disk": &r.Disk} {
		if c.IsFlagSet(flag) {
			var e error
			*to, e = roost.ParseBytes(c.StringFlag(flag))
			usage(flag, e)
		}
	}
	if r.GPUs = c.CountFlag("gpus"); r.GPUs < 0 {
		usage("gpus", fmt.Errorf("%d is below 0", r.GPUs))
	}
	for _, verb := range provider.CommandVerbs() {
		if words := strings.Fields(c.StringFlag(verb)); len(words) > 0 {
			if s.Programs == nil {
				s.Programs = map[string][]string{}
			}
			s.Programs[verb] = words
		}
	}
	return s, err
}
