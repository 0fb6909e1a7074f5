package pbs

import (
	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost/internal/cli/pbs/pbsframe"
)

// qsubFlags are the options of qsub. What they mean is in internal/pbs/qsub.
func qsubFlags() []ucli.Flag {
	return []ucli.Flag{
		pbsframe.ShortFlag("A", "ACCOUNT", "charge this accounting group"),
		pbsframe.ShortFlag("a", "TIME", "start not before [[[[CC]YY]MM]DD]hhmm[.SS]"),
		pbsframe.ShortFlag("b", "SECONDS", "taken and not used: qsub tries for half a minute"),
		pbsframe.ShortFlag("C", "PREFIX", "what begins a line of directives, instead of #PBS; nothing: there are none"),
		pbsframe.ShortFlag("c", "WHEN",
			"when to checkpoint: n (never), s (when it has to leave its machine), c or w (from "+
				"time to time), c=MINUTES or w=MINUTES, u (as usual)"),
		pbsframe.ShortFlag("cell", "", "submit to the queue of the cell, which outlives this machine"),
		pbsframe.ShortFlag("D", "DIR", "the same as -d"),
		pbsframe.ShortFlag("d", "DIR", "start the job there instead of in the home directory"),
		pbsframe.ShortFlag("drmaa", "",
			"alone: submit the job template of the library libdrmaa on standard input"),
		pbsframe.ShortFlag("e", "PATH", "where standard error goes: [HOST:]FILE, or a directory"),
		pbsframe.ShortFlag("F", "ARGUMENTS", "arguments of the script, in one word"),
		pbsframe.ShortFlag("f", "", "taken and not used: there is no daemon of qsub"),
		pbsframe.ShortFlag("h", "", "hold the job until qrls"),
		pbsframe.ShortFlag("I", "",
			"run a login shell, or the command, on this terminal; a script is read for its directives only"),
		pbsframe.ShortFlag("J", "X-Y[:Z][%N]",
			"make an array with these indexes, of which at most N tasks run at once"),
		pbsframe.ShortFlag("j", "oe|eo|n", "join standard output and standard error, in the file of the first letter"),
		pbsframe.ShortFlag("k", "o|e|oe|d|n", "keep output in the home directory, or (d) write it in place"),
		pbsframe.ShortFlag("l", "RESOURCE=VALUE,…",
			"ask for resources: select=, place=, nodes=, ncpus=, mem=, ngpus=, walltime=, …"),
		pbsframe.ShortFlag("local", "", "submit to the queue of this machine, where the node file says otherwise"),
		pbsframe.ShortFlag("M", "USERS", "whom mail is sent to, where the node sends any: a@x.org,b@y.org"),
		pbsframe.ShortFlag("m", "POINTS",
			"of what mail is sent: abort, begin and end, and j: of each task; n for none"),
		pbsframe.ShortFlag("N", "NAME", "the name of the job"),
		pbsframe.ShortFlag("n", "", "have the machines alone, as with -l place=excl"),
		pbsframe.ShortFlag("o", "PATH", "where standard output goes: [HOST:]FILE, or a directory"),
		pbsframe.ShortFlag("P", "PROJECT", "the project; without -A it is the accounting group"),
		pbsframe.ShortFlag("p", "PRIORITY", "order among your own jobs, from -1024 to 1023"),
		pbsframe.ShortFlag("q", "QUEUE@NODE",
			"the queue, or @NODE, or both: the node in whose queue the job goes, where you "+
				"are logged in; R12 is a reservation of pbs_rsub"),
		pbsframe.ShortFlag("R", "o|e|oe", "remove these files of output when the job has ended well"),
		pbsframe.ShortFlag("r", "y|n", "whether the job may be run again"),
		pbsframe.ShortFlag("S", "SHELL", "the shell that runs the script"),
		pbsframe.ShortFlag("T", "NAME", "refused: prologues are the machines' own"),
		pbsframe.ShortFlag("t", "LIST[%N]", "make an array with these indexes: 1,10,50-100:5"),
		pbsframe.ShortFlag("u", "USER", "taken if it is you"),
		pbsframe.ShortFlag("V", "", "take the whole environment along"),
		pbsframe.ShortFlag("v", "NAME[=VALUE],…", "set variables of the job's environment"),
		pbsframe.ShortFlag("W", "KEY=VALUE,…", "more attributes: depend=, block=true, umask=, stagein=, …"),
		pbsframe.ShortFlag("w", "DIR", "the same as -d"),
		pbsframe.ShortFlag("X", "", "refused: windows of an interactive job are not supported yet"),
		pbsframe.ShortFlag("x", "", "refused: an interactive job runs no script"),
		pbsframe.ShortFlag("z", "", "do not print the id"),
	}
}
