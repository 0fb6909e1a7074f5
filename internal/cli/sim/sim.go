package sim

import (
	"context"
	"strings"

	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/daemon"
)

// Command returns roost sim, which plays what a pool would do.
func Command() *frame.Command {
	var flags []ucli.Flag
	var names []string
	seen := map[string]bool{}
	for _, part := range subcommands() {
		b, own := part()
		names = append(names, b.Name)
		for _, f := range own {
			if name := f.Names()[0]; !seen[name] {
				seen[name], flags = true, append(flags, f)
			}
		}
	}
	return &frame.Command{
		Name: "sim", Group: frame.GroupAdmin, Summary: "try on machines that are not there what a pool would do",
		Synopsis: strings.Join(names, "|") + " …", MaxOperands: -1, Branches: subcommandList, Run: doSim,
		Flags: flags,
		Description: "Plays, with the code that runs a pool, what would happen: only the clock, the network and the " +
			"tasks are not real. No pool is touched.\n\n" +
			"  replay LOG  plays a log of jobs, of your own cluster or of the Parallel Workloads Archive, on " +
			"one machine of as many processors, and says how long they would have waited\n" +
			"  pack NODES PODS  fills the machines of a GPU trace with its tasks, and says how much of the GPUs is " +
			"given away and how much is left in pieces that nobody can use\n" +
			"  compact CHECKPOINT, compact NODES PODS  takes machines of a cell away at random until its work " +
			"no longer fits, and says how few hold it, by several scores\n" +
			"  fit [FILE] --request JOB  says how many more of a job would fit into a cell, and for want of " +
			"what no more\n" +
			"  whatif [FILE] --drain NODE …  says what a change of a cell would evict, delay and bring forward\n" +
			"  when [FILE] JOB  says when a job starts, one that waits or a job file; of these and of show a cell is " +
			"the pool as it is now, or as a FILE of roost cell checkpoint has it\n" +
			"  show [FILE]  says what such a cell is or was like: its machines, shares, and why tasks wait\n" +
			"  hrm         plays jobs on 1,050 machines, placed by one scheduler and by six, as the authors of HRM " +
			"did, and says how long they wait and how much conflicts\n" +
			"  model JOBS  makes up a log of so many jobs, as they were on parallel machines of the nineties (Lublin " +
			"and Feitelson 2003)\n" +
			"  faults      breaks small pools in many ways, each seed in another, and holds what happens against " +
			"what Roost promises; of a promise that breaks it tells the shortest story\n" +
			"  run FILE    runs a whole pool, of the daemons' own code, with a clock and tasks that are not real: a " +
			"checkpoint of a cell, from where it plays on, a mix of jobs that you have written down, or a log; run " +
			"NODES PODS plays a GPU trace",
		Examples: commandExamples(),
	}
}

// commandExamples are the examples of the help.
func commandExamples() []frame.Example {
	return []frame.Example{
		{Line: "roost sim replay KTH-SP2.swf.gz", Description: "EASY backfilling, as the jobs asked"},
		{Line: "roost sim replay KTH-SP2.swf.gz --order sjbf --expect last-two",
			Description: "the same jobs, as long as their users' last two took, the shortest first into gaps"},
		{Line: "roost sim replay our.swf --processors 512 -o then.swf",
			Description: "with twice the processors, and each job's wait in a file"},
		{Line: "roost sim pack openb_node_list_gpu_node.csv openb_pod_list_default.csv",
			Description: "how well the pool's own score fills machines, and best fit, and " +
				"fragmentation gradient descent"},
		{Line: "roost sim compact cell.roost --ways",
			Description: "how few machines would hold what runs in a cell, and what it would cost " +
				"to keep production apart"},
		{Line: "roost sim whatif --drain n7 --drain n8",
			Description: "who would have to wait longer in the pool as it is"},
		{Line: "roost sim when monday.cell 123",
			Description: "when a job starts, of a checkpoint that was taken on Monday"},
		{Line: "roost sim show monday.cell", Description: "what the cell was like on Monday"},
		{Line: "roost sim replay our.swf --svg our.svg --csv our.csv",
			Description: "with pictures of use, queue and waits, and the same as a table"},
		{Line: "roost sim hrm --svg hrm.svg", Description: "one scheduler or six: the paper's figures, drawn anew"},
		{Line: "roost sim model 10000 --processors 256 --seed 7 -o made.swf",
			Description: "a log of jobs that nobody has had"},
		{Line: "roost sim faults --seeds 10000",
			Description: "ten thousand pools under fire, none of which may break a promise"},
		{Line: "roost sim faults --seeds 1 --from 4711 --kinds cuts,crashes",
			Description: "one seed again, with less that happens to it"},
		{Line: "roost sim run mix.hcl --events", Description: "what happens to the jobs of a mix, a line a change"},
		{Line: "roost sim run monday.cell --until 12h --step 1h",
			Description: "how a cell goes on of which there is a checkpoint"},
		{Line: "roost sim run openb_node_list_gpu_node.csv openb_pod_list_default.csv --machines 300",
			Description: "the days of a cluster of GPUs, on a quarter of its machines"},
		{Line: "roost sim run monday.cell --pause", Description: "step through what happens, and look around"},
		{Line: "roost sim run our.swf --machines 64 --step 1d",
			Description: "a log on 64 machines, and how the pool stands each day"},
	}
}

// subcommands are what roost sim does, each with its flags, in the order of the help.
// A flag that two have means the same in both.
func subcommands() []func() (frame.Subcommand, []ucli.Flag) {
	return []func() (frame.Subcommand, []ucli.Flag){
		replaySubcommand,
		packSubcommand,
		compactSubcommand,
		fitSubcommand,
		whatifSubcommand,
		whenSubcommand,
		showSubcommand,
		hrmSubcommand,
		modelSubcommand,
		faultsSubcommand,
		runSubcommand,
	}
}

func subcommandList() (branches []frame.Subcommand) {
	for _, part := range subcommands() {
		b, own := part()
		for _, f := range own {
			b.Flags = append(b.Flags, f.Names()[0])
		}
		do := b.Run
		b.Run = func(c *frame.Invocation, args []string) error {
			for _, flag := range []string{"output", "csv", "svg"} { // now, and not after a minute's work
				if err := requireNewFile(c, c.StringFlag(flag)); err != nil {
					return err
				}
			}
			return do(c, args)
		}
		branches = append(branches, b)
	}
	return branches
}

func doSim(c *frame.Invocation) error {
	ctx, cancel := context.WithCancel(c.Context)
	defer cancel()
	daemon.RelaxGC(ctx)
	return c.RunSubcommand(subcommandList())
}
