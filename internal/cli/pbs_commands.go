package cli

// pbsCommands are the PBS commands in the order of the help.
func pbsCommands() []*command {
	all := []*command{
		qsubCommand(), qstatCommand(), qdelCommand(), qholdCommand(), qrlsCommand(), qsigCommand(), qmsgCommand(),
		qrerunCommand(), qselectCommand(), tracejobCommand(),
		qalterCommand(), qmoveCommand(), qorderCommand(), qrunCommand(), pbsnodesCommand(), pbsdshCommand(),
		pbsTmrshCommand(), qmgrCommand(), pbsRsubCommand(), pbsRstatCommand(), pbsRalterCommand(), pbsRdelCommand(),
		printjobCommand(), pbsAttachCommand(), pbsHostnCommand(),
	}
	all = append(all, qswitchCommands()...)
	for _, c := range all {
		switch c.name {
		case "pbsdsh", "pbs_tmrsh", "pbs_attach", "pbs_hostn": // they ask no schedd, or the one of their job
		default:
			c.prepare = readServerVariable
		}
	}
	return all
}
