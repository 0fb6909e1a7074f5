package pbs

import ucli "github.com/urfave/cli/v2"

// shortFlag is an option of a PBS command, as the help and the manual have it.
func shortFlag(letter, value, words string) ucli.Flag {
	if value == "" {
		return &ucli.BoolFlag{Name: letter, Usage: words}
	}
	return &ucli.StringFlag{Name: letter, Usage: "`" + value + "`: " + words}
}

// qsubFlags are the options of qsub. What they mean is in internal/pbs/qsub.
func qsubFlags() []ucli.Flag {
	return []ucli.Flag{
		shortFlag("A", "ACCOUNT", "charge this accounting group"),
		shortFlag("a", "TIME", "start not before [[[[CC]YY]MM]DD]hhmm[.SS]"),
		shortFlag("b", "SECONDS", "taken and not used: qsub tries for half a minute"),
		shortFlag("C", "PREFIX", "what begins a line of directives, instead of #PBS; nothing: there are none"),
		shortFlag("c", "WHEN", "when to checkpoint: n (never), s (when it has to leave its machine), c or w (from "+
			"time to time), c=MINUTES or w=MINUTES, u (as usual)"),
		shortFlag("D", "DIR", "the same as -d"),
		shortFlag("d", "DIR", "start the job there instead of in the home directory"),
		shortFlag("e", "PATH", "where standard error goes: [HOST:]FILE, or a directory"),
		shortFlag("F", "ARGUMENTS", "arguments of the script, in one word"),
		shortFlag("f", "", "taken and not used: there is no daemon of qsub"),
		shortFlag("h", "", "hold the job until qrls"),
		shortFlag("I", "",
			"run a login shell, or the command, on this terminal; a script is read for its directives only"),
		shortFlag("J", "X-Y[:Z][%N]", "make an array with these indexes, of which at most N tasks run at once"),
		shortFlag("j", "oe|eo|n", "join standard output and standard error, in the file of the first letter"),
		shortFlag("k", "o|e|oe|d|n", "keep output in the home directory, or (d) write it in place"),
		shortFlag("l", "RESOURCE=VALUE,…",
			"ask for resources: select=, place=, nodes=, ncpus=, mem=, ngpus=, walltime=, …"),
		shortFlag("M", "USERS", "whom mail is sent to, where the node sends any: a@x.org,b@y.org"),
		shortFlag("m", "POINTS", "of what mail is sent: abort, begin and end, and j: of each task; n for none"),
		shortFlag("N", "NAME", "the name of the job"),
		shortFlag("n", "", "have the machines alone, as with -l place=excl"),
		shortFlag("o", "PATH", "where standard output goes: [HOST:]FILE, or a directory"),
		shortFlag("P", "PROJECT", "the project; without -A it is the accounting group"),
		shortFlag("p", "PRIORITY", "order among your own jobs, from -1024 to 1023"),
		shortFlag("q", "QUEUE@NODE", "the queue, or @NODE, or both: the node in whose queue the job goes, where you "+
			"are logged in; R12 is a reservation of pbs_rsub"),
		shortFlag("R", "o|e|oe", "remove these files of output when the job has ended well"),
		shortFlag("r", "y|n", "whether the job may be run again"),
		shortFlag("S", "SHELL", "the shell that runs the script"),
		shortFlag("T", "NAME", "refused: prologues are the machines' own"),
		shortFlag("t", "LIST[%N]", "make an array with these indexes: 1,10,50-100:5"),
		shortFlag("u", "USER", "taken if it is you"),
		shortFlag("V", "", "take the whole environment along"),
		shortFlag("v", "NAME[=VALUE],…", "set variables of the job's environment"),
		shortFlag("W", "KEY=VALUE,…", "more attributes: depend=, block=true, umask=, stagein=, …"),
		shortFlag("w", "DIR", "the same as -d"),
		shortFlag("X", "", "refused: windows of an interactive job are not supported yet"),
		shortFlag("x", "", "refused: an interactive job runs no script"),
		shortFlag("z", "", "do not print the id"),
	}
}
