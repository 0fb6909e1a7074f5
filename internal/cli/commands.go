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
		classadCommand(), completionCommand(), versionCommand(), wordsCommand(),
	}
	all = append(all, pbsCommands()...)
	return withCommonFlags(append(all, daemonCommands()...))
}

// New returns the program with those streams and that environment ("NAME=value"). It
// starts nothing.
func New(stdin io.Reader, stdout, stderr io.Writer, env []string) *App {
	return newApp(stdin, stdout, stderr, env, commands)
}
