package cli

import "io"

// commands is the table of everything, in the order of the help.
func commands() []*command {
	all := []*command{
		submitCommand(), runCommand(), translateCommand(),
		jobsCommand(), showCommand(), whyCommand(), logsCommand(), sshCommand(), topCommand(), waitCommand(),
		historyCommand(), sharesCommand(),
		rmCommand(), holdCommand(), releaseCommand(), retryCommand(), checkpointCommand(), suspendCommand(),
		resumeCommand(), loginCommand(), loginsCommand(),
		pauseCommand(), mineCommand(), sessionAgentCommand(),
		nodesCommand(), adsCommand(), doctorCommand(), cellCommand(), upCommand(), masterCommand(), pkiCommand(),
		initCommand(), tokenCommand(), joinCommand(), leaveCommand(), revokeCommand(), installCommand(),
		quotaCommand(), groupCommand(), limitCommand(), queueCommand(), drainCommand(), undrainCommand(),
		commentCommand(), reservationCommand(), adminCommand(), simCommand(),
		qsubCommand(), qstatCommand(), qdelCommand(), qholdCommand(), qrlsCommand(), qsigCommand(), qmsgCommand(),
		qrerunCommand(), qselectCommand(), tracejobCommand(),
		qalterCommand(), qmoveCommand(), qorderCommand(), qrunCommand(), pbsnodesCommand(), pbsdshCommand(),
		pbsTmrshCommand(), pbsReleaseNodesCommand(),
		classadCommand(), completionCommand(), versionCommand(), wordsCommand(),
	}
	all = append(all, qmgrCommand(), pbsRsubCommand(), pbsRstatCommand(), pbsRalterCommand(), pbsRdelCommand(),
		printjobCommand(), pbsAttachCommand(), pbsHostnCommand())
	all = append(all, qswitchCommands()...)
	all = append(all, daemonCommands()...)
	for _, c := range all {
		if !c.rawArgs {
			c.flags = append(c.flags, commonFlags()...)
		}
	}
	return all
}

// New returns the program with those streams and that environment ("NAME=value"). It
// starts nothing.
func New(stdin io.Reader, stdout, stderr io.Writer, env []string) *App {
	return newApp(stdin, stdout, stderr, env, commands)
}
