package flows

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/cli/jobs"
	"github.com/roost-batch/roost/internal/cli/progressbar"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/submit/dag"
	"github.com/roost-batch/roost/internal/wire/scheddapi"
	"github.com/roost-batch/roost/schedd/flow"
	"github.com/roost-batch/roost/schedd/flow/graph"
	"github.com/roost-batch/roost/schedd/flow/plan"
)

// submitFlags are the flags of roost flow submit.
func submitFlags() []ucli.Flag {
	return []ucli.Flag{
		&ucli.UintFlag{Name: "max-jobs",
			Usage: "no more than `N` nodes have jobs in the queue at a time; 0: any number"},
		&ucli.UintFlag{Name: "max-idle", Value: uint(dag.DefaultLimits().IdleTasks),
			Usage: "no job is submitted while `N` tasks of the flow's jobs wait; 0: any number"},
		&ucli.UintFlag{Name: "max-pre", Value: uint(dag.DefaultLimits().Pre),
			Usage: "no more than `N` PRE scripts run at a time"},
		&ucli.UintFlag{Name: "max-post", Value: uint(dag.DefaultLimits().Post),
			Usage: "no more than `N` POST scripts run at a time"},
		&ucli.BoolFlag{Name: "depth-first", Usage: "of nodes with one priority the deepest begins first"},
		&ucli.BoolFlag{Name: "always-run-post", Usage: "POST scripts run also where the PRE script has failed"},
		&ucli.IntFlag{Name: "rescue", Value: -1,
			Usage: "begin with the nodes done that rescue file `N` says; 0: none; otherwise the newest is taken"},
		&ucli.StringFlag{Name: "load-save",
			Usage: "begin with the nodes done that the save point `FILE` says, which SAVE_POINT_FILE has written"},
		&ucli.BoolFlag{Name: "write-rescue",
			Usage: "write FILE.rescueNNN if the flow ends otherwise than it should, as DAGMan does"},
		&ucli.StringFlag{Name: "name", Usage: "the flow's `NAME` in lists; otherwise that of the file"},
		&ucli.StringFlag{Name: "key",
			Usage: "the submit `KEY`: submitting again with the same one gives the same flow"},
		&ucli.BoolFlag{Name: "cell", Usage: "submit to the queue of the cell, which outlives this machine"},
		&ucli.BoolFlag{Name: "hold", Usage: "hold the flow until it is released"},
		&ucli.BoolFlag{Name: "sub-flow", Usage: "wait, as a node of another flow does: where the key was used " +
			"before, what had failed runs again, and SIGTERM removes the flow"},
		&ucli.BoolFlag{Name: "wait", Aliases: []string{"w"},
			Usage: "wait until the flow has ended; the exit status is as of roost wait"},
	}
}

// flowOptions are how a flow is submitted.
type flowOptions struct {
	useDirectory              bool // names of files are relative to the directory of the DAG file
	limits                    flow.Limits
	depthFirst, alwaysRunPost bool
	rescue                    int    // of the rescue file; 0: none; below 0: the newest
	config                    string // a file with settings of DAGMan; empty: that of CONFIG
	appendVariables           bool   // variables without PREPEND or APPEND are set behind the description
	loadSave                  string // a save point; empty: none
	name                      string // empty: that of the file
	key                       string // empty: a new one
	cell, hold                bool
	writesRescue              bool // a rescue file when the flow ends otherwise than it should
	priority                  int
	set                       map[string]bool // options of the command line
}

// optionsOf reads the flags of roost flow submit.
func optionsOf(c *frame.Invocation) flowOptions {
	limit := func(name string) int { return int(min(c.Flags.Uint(name), roost.MaxTasks)) }
	return flowOptions{
		useDirectory: c.Flag("use-dag-dir"),
		limits: flow.Limits{Jobs: limit("max-jobs"), IdleTasks: limit("max-idle"), Pre: limit("max-pre"),
			Post: limit("max-post")},
		depthFirst: c.Flag("depth-first"), alwaysRunPost: c.Flag("always-run-post"), rescue: c.CountFlag("rescue"),
		name: c.StringFlag("name"), key: c.StringFlag("key"), cell: c.Flag("cell"), hold: c.Flag("hold"),
		writesRescue: c.Flag("write-rescue"), loadSave: c.StringFlag("load-save"),
		set: setFlags(c, "max-jobs", "max-idle", "max-pre", "max-post", "depth-first", "always-run-post"),
	}
}

// setFlags returns which of some flags are set.
func setFlags(c *frame.Invocation, names ...string) map[string]bool {
	set := map[string]bool{}
	for _, name := range names {
		set[name] = c.IsFlagSet(name)
	}
	return set
}

// submitFlow submits the flow of all files.
func submitFlow(c *frame.Invocation, args []string) error {
	options := optionsOf(c)
	p, err := compileFlow(c, args, &options)
	if err != nil {
		return err
	}
	reply, err := sendFlow(c, p, options)
	if err != nil {
		return err
	}
	id := reply.GetIds()[0]
	if c.Flag("sub-flow") {
		return runSubflow(c, id, reply.GetRepeatedKey())
	}
	if c.WantsJSON() {
		err = frame.PrintJSON(c.Stdout, frame.JSONDocument{"flow": id, "nodes": countNodes(p),
			"repeated": reply.GetRepeatedKey(), "cell_queue": reply.GetCellQueue()})
	} else {
		fmt.Fprintln(c.Stdout, id)
		if c.ErrScreen.Terminal {
			fmt.Fprintln(c.Stderr, c.ErrScreen.ColourText(frame.Dim, fmt.Sprintf("submitted a flow of %s; follow it "+
				"with: roost flow status %s", document.Plural(countNodes(p), "node"), id)))
		}
	}
	if err != nil || !c.Flag("wait") {
		return err
	}
	return jobs.AwaitJobs(c, progressbar.New, reply.GetIds(), 0, c.WantsJSON())
}

// sendFlow submits a flow that is compiled.
func sendFlow(c *frame.Invocation, p *plan.Plan, o flowOptions) (reply *scheddapi.SubmitReply, err error) {
	form, err := plan.Encode(p)
	if err != nil {
		return nil, err
	}
	req := &scheddapi.SubmitRequest{Key: o.key, Jobs: []*scheddapi.JobSpec{{Ad: flowAd(p, o).String(), Count: 1,
		Flow: form}}}
	if o.cell {
		req.Schedd = jobs.CellQueue
	}
	if req.Key == "" {
		req.Key = rand.Text()
	}
	s, err := c.ConnectSchedd()
	if err != nil {
		return nil, err
	}
	err = c.Retry(frame.SubmitTimeout, func(ctx context.Context, _ func()) error {
		ctx, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		reply, err = s.SendSubmission(ctx, req, nil)
		return frame.DecodeError(err)
	})
	return reply, err
}

func countNodes(p *plan.Plan) int {
	s := p.Graph.Statistics()
	return s.Nodes - s.ByKind[graph.JoinNode]
}

// flowAd is the ad of the flow itself. It asks for next to nothing, as it runs nothing.
func flowAd(p *plan.Plan, o flowOptions) *classad.Ad {
	ad := classad.New()
	name := o.name
	if name == "" {
		name = strings.TrimSuffix(filepath.Base(p.Files[0]), filepath.Ext(p.Files[0]))
	}
	ad.SetString(roost.AttrJobName, name)
	ad.SetBool(roost.AttrIsFlow, true)
	ad.SetReal(roost.AttrRequestCpus, 0.001)
	ad.SetInt(roost.AttrRequestMemory, 0)
	ad.SetString(roost.AttrIwd, p.Directory)
	if o.priority != 0 {
		ad.SetInt(roost.AttrPriority, int64(o.priority))
	}
	if o.hold {
		ad.SetBool(roost.AttrHoldOnSubmit, true)
	}
	return ad
}

// compileFlow reads the DAG files and what they name, and returns their plan.
func compileFlow(c *frame.Invocation, args []string, o *flowOptions) (*plan.Plan, error) {
	files := newUserFiles(c)
	read, diags := dag.Parse(files, args, dag.ParseOptions{UseDirectory: o.useDirectory})
	printDiagnostics(c, diags)
	if diags.HasErrors() {
		return nil, frame.ExitError(errorKind(diags).ExitCode())
	}
	err := applyConfig(c, read, o)
	if err != nil {
		return nil, err
	}
	if len(args) == 1 {
		files.applySettings(o, args[0])
	}
	if o.loadSave != "" {
		err = applySavePoint(c, o.loadSave, read)
	} else {
		err = applyRescue(c, args, o.rescue, read)
	}
	if err != nil {
		return nil, err
	}
	opts, err := c.SubmitOptions()
	if err != nil {
		return nil, err
	}
	p := read.Plan(opts.Dir)
	p.Environment, p.Limits = opts.Environ, o.limits
	p.DepthFirst, p.AlwaysRunPost = o.depthFirst, o.alwaysRunPost
	if o.writesRescue {
		p.RescueBase = strings.TrimSuffix(c.AbsolutePath(dag.RescueName(args, 1)), ".rescue001")
		if !filepath.IsAbs(p.RescueBase) {
			p.RescueBase = filepath.Join(opts.Dir, p.RescueBase)
		}
	}
	if err := prepareReports(c, p, o, read); err != nil {
		return nil, err
	}
	findScripts(p)
	return p, compileJobs(c, read, p, opts, o)
}

// applyRescue marks the nodes that a rescue file says are done.
func applyRescue(c *frame.Invocation, args []string, number int, read *dag.Flow) error {
	if number < 0 {
		number = dag.NewestRescue(newUserFiles(c), args)
	}
	if number == 0 {
		return nil
	}
	name := dag.RescueName(args, number)
	rescue, diags := dag.ReadRescue(newUserFiles(c), name, read)
	printDiagnostics(c, diags)
	if diags.HasErrors() {
		return frame.ExitError(errorKind(diags).ExitCode())
	}
	rescue.Apply(read)
	fmt.Fprintf(c.Stderr, "roost: the flow begins with %s done, by %s; --rescue 0 begins from the beginning\n",
		document.Plural(len(rescue.Done), "node"), document.PrintableText(name))
	return nil
}

// findScripts has scripts without a directory be files of the directory in which they
// run, as DAGMan does. Others are looked for along PATH.
func findScripts(p *plan.Plan) {
	for _, n := range p.Graph.Nodes() {
		s := &p.Settings[n.Settings]
		directory := p.Texts.Text(s.Directory)
		if !filepath.IsAbs(directory) {
			directory = filepath.Join(p.Directory, directory)
		}
		for _, number := range []uint32{s.Pre, s.Post} {
			command := p.Texts.Text(p.Scripts[number].Command)
			words := strings.Fields(command)
			if len(words) == 0 || strings.Contains(words[0], "/") {
				continue
			}
			if info, err := os.Stat(filepath.Join(directory, words[0])); err == nil && info.Mode().IsRegular() {
				if id, ok := p.Texts.Add([]byte("./" + strings.TrimLeft(command, " \t"))); ok {
					p.Scripts[number].Command = id
				}
			}
		}
	}
}
