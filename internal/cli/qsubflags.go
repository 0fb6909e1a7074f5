package cli

import ucli "github.com/urfave/cli/v2"

// short is an option of a PBS command, as the help and the manual have it.
func short(letter, value, words string) ucli.Flag {
	if value == "" {
		return &ucli.BoolFlag{Name: letter, Usage: words}
	}
	return &ucli.StringFlag{Name: letter, Usage: "`" + value + "`: " + words}
}

// qsubFlags are the options of qsub. What they mean is in internal/pbs.
func qsubFlags() []ucli.Flag {
	return []ucli.Flag{
		short("A", "ACCOUNT", "charge this accounting group"),
		short("a", "TIME", "start not before [[[[CC]YY]MM]DD]hhmm[.SS]"),
		short("b", "SECONDS", "taken and not used: qsub tries for half a minute"),
		short("C", "PREFIX", "what begins a line of directives, instead of #PBS; nothing: there are none"),
		short("c", "WHEN", "when to checkpoint: n (never), s (when it has to leave its machine), c or w (from time to time), c=MINUTES or w=MINUTES, u (as usual)"),
		short("D", "DIR", "the same as -d"),
		short("d", "DIR", "start the job there instead of in the home directory"),
		short("e", "PATH", "where standard error goes: [HOST:]FILE, or a directory"),
		short("F", "ARGUMENTS", "arguments of the script, in one word"),
		short("f", "", "taken and not used: there is no daemon of qsub"),
		short("h", "", "hold the job until qrls"),
		short("I", "", "run a login shell, or the command, on this terminal; a script is read for its directives only"),
		short("J", "X-Y[:Z][%N]", "make an array with these indexes, of which at most N tasks run at once"),
		short("j", "oe|eo|n", "join standard output and standard error, in the file of the first letter"),
		short("k", "o|e|oe|d|n", "keep output in the home directory, or (d) write it in place"),
		short("l", "RESOURCE=VALUE,…", "ask for resources: select=, place=, nodes=, ncpus=, mem=, ngpus=, walltime=, …"),
		short("M", "USERS", "whom mail is sent to, where the node sends any: a@x.org,b@y.org"),
		short("m", "POINTS", "of what mail is sent: abort, begin and end, and j: of each task; n for none"),
		short("N", "NAME", "the name of the job"),
		short("n", "", "have the machines alone, as with -l place=excl"),
		short("o", "PATH", "where standard output goes: [HOST:]FILE, or a directory"),
		short("P", "PROJECT", "the project; without -A it is the accounting group"),
		short("p", "PRIORITY", "order among your own jobs, from -1024 to 1023"),
		short("q", "QUEUE@NODE", "the queue, or @NODE, or both: the node in whose queue the job goes, where you are logged in; R12 is a reservation of pbs_rsub"),
		short("R", "o|e|oe", "remove these files of output when the job has ended well"),
		short("r", "y|n", "whether the job may be run again"),
		short("S", "SHELL", "the shell that runs the script"),
		short("T", "NAME", "refused: prologues are the machines' own"),
		short("t", "LIST[%N]", "make an array with these indexes: 1,10,50-100:5"),
		short("u", "USER", "taken if it is you"),
		short("V", "", "take the whole environment along"),
		short("v", "NAME[=VALUE],…", "set variables of the job's environment"),
		short("W", "KEY=VALUE,…", "more attributes: depend=, block=true, umask=, stagein=, …"),
		short("w", "DIR", "the same as -d"),
		short("X", "", "refused: windows of an interactive job are not supported yet"),
		short("x", "", "refused: an interactive job runs no script"),
		short("z", "", "do not print the id"),
	}
}
