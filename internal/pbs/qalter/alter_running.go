package qalter

import (
	"slices"
	"strconv"
	"strings"

	"github.com/roost-batch/roost/internal/pbs/qsub"
)

func decimalText(n int) string { return strconv.Itoa(n) }

const alterUsage = "usage: qalter [-a date_time] [-A account] [-c n|s|c|w|c=min|w=min] [-e path] [-h u|o|s|n] [-j " +
	"oe|eo|n] [-k keep] [-l resources]\n" +
	"              [-m events] [-M users] [-N name] [-o path] [-p priority] [-P project] [-r y|n] [-R o|e|oe] [-S " +
	"shell] [-u user]\n" +
	"              [-v variables] [-W attributes] job..."

// The exit statuses of qalter that qsub does not have.
const (
	exitReadOnly = 155
	exitRuns     = 167
)

// optionAttributes returns PBS's name of the attribute that an option sets.
func optionAttributes(letter byte) string {
	for name, l := range qsub.NamedAttributes {
		if l == letter {
			return name
		}
	}
	return map[byte]string{'h': "Hold_Types", 'r': "Rerunable"}[letter]
}

// jobContinues are the attributes that can be changed while a job runs, and below them
// the resources. In OpenPBS they have ATR_DFLAG_ALTRUN in master_job_attr_def.xml; the
// output paths are left out, since POSIX forbids changing them.
var (
	jobContinues = []string{
		"Execution_Time", "Checkpoint", "Hold_Types", "Mail_Points", "Mail_Users", "Job_Name", "Priority", "Rerunable",
		"Shell_Path_List", "run_count", "max_run_subjobs", "comment",
		"release_nodes_on_stageout", "tolerate_node_failures",
	}
	jobContinuesWith = []string{"cput", "walltime", "min_walltime", "max_walltime"}
)

// readOnlyAttributes are the attributes that cannot be changed after submission.
var readOnlyAttributes = []string{"block", "group_list", "interactive", "Resource_List.image",
	"Resource_List.container_engine", "Resource_List.container_ports"}

// touchedAttributes lists the attributes that the options set, by PBS's names.
func (a *JobAlteration) touchedAttributes() (names []string) {
	for _, o := range a.options {
		stated := &qsub.JobSubmission{ResourceValues: map[string]string{}, Attributes: map[string]string{}}
		switch v := strings.TrimSpace(o.Value); o.Letter {
		case 'l':
			stated.AddResources(v) // it was read before
			for _, name := range qsub.SortedNames(stated.ResourceValues) {
				names = append(names, "Resource_List."+name)
			}
		case 'W':
			stated.AddAttributes(v)
			names = append(names, qsub.SortedNames(stated.Attributes)...)
		default:
			names = append(names, optionAttributes(o.Letter))
		}
	}
	return names
}

// checkRunningJob refuses what cannot be changed at all, or not while the job runs.
func (a *JobAlteration) checkRunningJob(j CurrentJob, id string) error {
	for _, name := range a.touchedAttributes() {
		if slices.Contains(readOnlyAttributes, name) {
			return &qsub.RefusalError{
				Text:       "qalter: Cannot set attribute, read only or insufficient permission  " + name + " " + id,
				ExitStatus: exitReadOnly,
			}
		}
		resource, ofJob := strings.CutPrefix(name, "Resource_List.")
		if j.Runs && !(ofJob && slices.Contains(jobContinuesWith, resource)) && !slices.Contains(jobContinues, name) {
			return &qsub.RefusalError{
				Text: "qalter: Cannot modify attribute while job running  " + name + " " + id, ExitStatus: exitRuns,
			}
		}
	}
	return nil
}
