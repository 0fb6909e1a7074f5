package translate

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/roost-batch/roost/internal/pbs/qsub"
)

// setAttributes reads -W.
func (x *pbsScript) setAttributes(v string) bool {
	items, carried := qsub.SplitList(v), false
	for i := 0; i < len(items); i++ {
		name, value, _ := strings.Cut(strings.TrimSpace(items[i]), "=")
		switch name {
		case "depend", "stagein", "stageout", "group_list", "x":
			for i+1 < len(items) && !strings.Contains(items[i+1], "=") { // commas within a list
				i++
				value += "," + items[i]
			}
		}
		switch name {
		case "depend":
			carried = x.setDependency(value) || carried
		case "umask":
			x.job.setText("umask", value)
			carried = true
		case "max_run_subjobs":
			n, err := strconv.Atoi(value)
			if err == nil && n > 0 {
				x.job.setInt("max_running", n)
			}
			carried = err == nil
		case "run_count":
			n, err := strconv.ParseUint(value, 10, 31)
			if err == nil {
				x.job.setInt("run_count", int(n))
			}
			carried = err == nil || carried
		case "block":
			x.noteDirectiveLost("roost submit --wait FILE waits, and ends as the jobs do.")
		case "stagein":
			carried = x.setStaging("inputs", value) || carried
		case "stageout":
			x.noteDirectiveLost("outputs = { \"NAME there\" = \"NAME here\" } says which new files of the task's " +
				"directory come back, and as what; they go below the job's directory.")
		case "sandbox":
			if value == "PRIVATE" {
				x.job.setText("transfer", "always")
			}
			carried = true
		case "group_list":
			carried = x.setUnixGroup(value) || carried
		case "Rerunable":
			x.job.setSource("rerunnable", strconv.FormatBool(!strings.HasPrefix(strings.ToLower(value), "f") &&
				value != "n"))
			carried = true
		case "release_nodes_on_stageout", "tolerate_node_failures":
			x.noteDirectiveLost("It has no effect in Roost.")
		case "create_resv_from_job":
			x.noteDirectiveLost("roost reservation makes one.")
		case "interactive":
			x.noteDirectiveLost("For an interactive job, run roost run -- COMMAND, or submit one and enter it with " +
				"roost ssh.")
		default:
			if letter, ok := qsub.AttributeOption(name); ok {
				carried = x.setOption(letter, value) || carried
				continue
			}
			x.noteDirectiveLost(fmt.Sprintf("-W %s: %s", shownLine(name), noControl))
		}
	}
	return carried
}

// setUnixGroup reads group_list: the group without a host counts.
func (x *pbsScript) setUnixGroup(v string) (carried bool) {
	for _, item := range strings.Split(v, ",") {
		if name, host, _ := strings.Cut(strings.TrimSpace(item), "@"); host == "" {
			x.job.setText("unix_group", name)
			carried = true
		}
	}
	if x.job.settings["unix_group"] == "" {
		x.noteDirectiveLost("These groups are for single machines; a job has one: unix_group = \"NAME\".")
	}
	return carried
}

// setDependency carries over dependencies without job ids; others have ids of the other
// system.
func (x *pbsScript) setDependency(v string) bool {
	var own, others []string
	for _, group := range strings.Split(v, ",") {
		group = strings.TrimSpace(group)
		if kind, n, _ := strings.Cut(group, ":"); kind == "on" || kind == "synccount" {
			own = append(own, kind+":"+n)
		} else if group != "" {
			others = append(others, group)
		}
	}
	if len(others) > 0 {
		x.noteDirectiveLost(parseDependsOn(strings.Join(others, ","), ","))
	}
	if len(own) > 0 {
		x.job.setSource("depends_on", textListSource(own))
	}
	return len(own) > 0
}

// setStaging reads "here@host:there,…": files to stage, with their names on the machine.
func (x *pbsScript) setStaging(setting, v string) bool {
	for _, item := range strings.Split(v, ",") {
		local, remote, ok := strings.Cut(item, "@")
		if _, path, hosted := strings.Cut(remote, ":"); hosted {
			remote = path
		}
		if !ok || local == "" || remote == "" || strings.HasPrefix(local, "/") || strings.HasPrefix(local, "$") ||
			strings.HasPrefix(local, "~") {
			return x.noteDirectiveLost("Files are brought with inputs = { \"name there\" = \"/path/here\" }, and are " +
				"found in the task's directory.")
		}
		x.job.addToMap(setting, local, quotedText(remote))
	}
	x.job.setText("transfer", "always")
	return true
}
