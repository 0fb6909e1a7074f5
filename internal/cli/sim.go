package cli

import (
	"context"
	"strings"

	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost/internal/daemon"
)

func simCommand() *command {
	var flags []ucli.Flag
	var names []string
	seen := map[string]bool{}
	for _, part := range simSubcommands() {
		b, own := part()
		names = append(names, b.name)
		for _, f := range own {
			if name := f.Names()[0]; !seen[name] {
				seen[name], flags = true, append(flags, f)
			}
		}
	}
	return &command{
		name: "sim", group: groupAdmin, summary: "try on machines that are not there what a pool would do",
		synopsis: strings.Join(names, "|") + " …", maxOperands: -1, branches: simSubcommandList, run: doSim,
		flags: flags,
		description: "Plays, with the code that runs a pool, what would happen: only the clock, the network and the " +
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
			"  when [FILE] JOB  says when a job starts, one that waits or a job file; of these three a cell is the " +
			"pool as it is now, or as a FILE of roost cell checkpoint has it\n" +
			"  hrm         plays jobs on 1,050 machines, placed by one scheduler and by six, as the authors of HRM " +
			"did, and says how long they wait and how much conflicts\n" +
			"  model JOBS  makes up a log of so many jobs, as they were on parallel machines of the nineties (Lublin " +
			"and Feitelson 2003)\n" +
			"  faults      breaks small pools in many ways, each seed in another, and holds what happens against " +
			"what Roost promises; of a promise that breaks it tells the shortest story\n" +
			"  run FILE    runs a whole pool, of the daemons' own code, with a clock and tasks that are not real: a " +
			"checkpoint of a cell, from where it plays on, a mix of jobs that you have written down, or a log; run " +
			"NODES PODS plays a GPU trace",
		examples: []commandExample{
			{"roost sim replay KTH-SP2.swf.gz", "EASY backfilling, as the jobs asked"},
			{"roost sim replay KTH-SP2.swf.gz --order sjbf --expect last-two",
				"the same jobs, as long as their users' last two took, the shortest first into gaps"},
			{"roost sim replay our.swf --processors 512 -o then.swf",
				"with twice the processors, and each job's wait in a file"},
			{"roost sim pack openb_node_list_gpu_node.csv openb_pod_list_default.csv",
				"how well the pool's own score fills machines, and best fit, and fragmentation gradient descent"},
			{"roost sim compact cell.roost --ways",
				"how few machines would hold what runs in a cell, and what it would cost to keep production apart"},
			{"roost sim whatif --drain n7 --drain n8", "who would have to wait longer in the pool as it is"},
			{"roost sim when monday.cell 123", "when a job starts, of a checkpoint that was taken on Monday"},
			{"roost sim replay our.swf --svg our.svg --csv our.csv",
				"with pictures of use, queue and waits, and the same as a table"},
			{"roost sim hrm --svg hrm.svg", "one scheduler or six: the paper's figures, drawn anew"},
			{"roost sim model 10000 --processors 256 --seed 7 -o made.swf", "a log of jobs that nobody has had"},
			{"roost sim faults --seeds 10000", "ten thousand pools under fire, none of which may break a promise"},
			{"roost sim faults --seeds 1 --from 4711 --kinds cuts,crashes",
				"one seed again, with less that happens to it"},
			{"roost sim run mix.hcl --events", "what happens to the jobs of a mix, a line a change"},
			{"roost sim run monday.cell --until 12h --step 1h", "how a cell goes on of which there is a checkpoint"},
			{"roost sim run openb_node_list_gpu_node.csv openb_pod_list_default.csv --machines 300",
				"the days of a cluster of GPUs, on a quarter of its machines"},
			{"roost sim run monday.cell --pause", "step through what happens, and look around"},
			{"roost sim run our.swf --machines 64 --step 1d", "a log on 64 machines, and how the pool stands each day"},
		},
	}
}

// simSubcommands are what roost sim does, each with its flags, in the order of the help.
// A flag that two have means the same in both.
func simSubcommands() []func() (subcommand, []ucli.Flag) {
	return []func() (subcommand, []ucli.Flag){
		simReplay,
		simPack,
		simCompact,
		simFit,
		simWhatif,
		simWhen,
		simHRM,
		simModel,
		simFaults,
		simRun,
	}
}

func simSubcommandList() (branches []subcommand) {
	for _, part := range simSubcommands() {
		b, own := part()
		for _, f := range own {
			b.flags = append(b.flags, f.Names()[0])
		}
		do := b.run
		b.run = func(c *invocation, args []string) error {
			for _, flag := range []string{"output", "csv", "svg"} { // now, and not after a minute's work
				if err := c.requireNewFile(c.stringFlag(flag)); err != nil {
					return err
				}
			}
			return do(c, args)
		}
		branches = append(branches, b)
	}
	return branches
}

func doSim(c *invocation) error {
	ctx, cancel := context.WithCancel(c.ctx)
	defer cancel()
	daemon.RelaxGC(ctx)
	return c.runSubcommand(simSubcommandList())
}
