package translate

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/roost-batch/roost/internal/pbs"
)

// attributes reads -W.
func (x *pbsScript) attributes(v string) bool {
	items, carried := pbs.List(v), false
	for i := 0; i < len(items); i++ {
		name, value, _ := strings.Cut(strings.TrimSpace(items[i]), "=")
		switch name {
		case "depend", "stagein", "stageout", "group_list", "x":
			for i+1 < len(items) && !strings.Contains(items[i+1], "=") { // commas of a list stand for themselves
				i++
				value += "," + items[i]
			}
		}
		switch name {
		case "depend":
			x.refuse(dependsOn(value, ","))
		case "umask":
			x.j.setText("umask", value)
			carried = true
		case "max_run_subjobs":
			n, err := strconv.Atoi(value)
			if err == nil && n > 0 {
				x.j.setInt("max_running", n)
			}
			carried = err == nil
		case "block":
			x.refuse("roost submit --wait FILE waits, and ends as the jobs do.")
		case "stagein":
			carried = x.stage("inputs", value) || carried
		case "stageout":
			x.refuse("outputs = [\"NAME\"] says which new files of the task's directory come back to where the job was submitted; all of them do unless it is said.")
		case "sandbox":
			x.refuse("On machines that do not see your files a task has a directory of its own in any case; transfer = \"always\" gives it one everywhere.")
		case "group_list":
			x.refuse("The job runs with the groups of whom submits it; group is the accounting group.")
		case "interactive":
			x.refuse("For an interactive job, run roost run -- COMMAND, or submit one and enter it with roost ssh.")
		default:
			x.refuse(fmt.Sprintf("-W %s: %s", shown(name), noControl))
		}
	}
	return carried
}

// stage reads "here@host:there,…": files that are brought, under the name that they get.
func (x *pbsScript) stage(setting, v string) bool {
	for _, item := range strings.Split(v, ",") {
		local, remote, ok := strings.Cut(item, "@")
		if _, path, hosted := strings.Cut(remote, ":"); hosted {
			remote = path
		}
		if !ok || local == "" || remote == "" || strings.HasPrefix(local, "/") || strings.HasPrefix(local, "$") || strings.HasPrefix(local, "~") {
			return x.refuse("Files are brought with inputs = { \"name there\" = \"/path/here\" }, and are found in the task's directory.")
		}
		x.j.add(setting, local, quoted(remote))
	}
	return true
}
