package qsub

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/submit/jobspec"
)

// setVariables parses -v: "A,B=2,C='a,b'". A name without a value gets its value in the
// environment of qsub.
func (s *JobSubmission) setVariables(value string) error {
	s.export = map[string]string{}
	for _, item := range SplitList(value) {
		name, v, set := strings.Cut(item, "=")
		if name = strings.TrimSpace(name); name == "" && !set {
			continue
		}
		if name == "" || strings.ContainsAny(name, " \t\x00") || strings.IndexByte(v, 0) >= 0 {
			return IllegalValueError('v')
		}
		if !set {
			var there bool
			if v, there = LookUpVariable(s.Caller.Environ, name); !there {
				return refusalf("cannot send environment with the job: "+name+" is not set", exitScript)
			}
		}
		if !strings.HasPrefix(name, "PBS_O_") {
			s.export[name] = v
		}
	}
	return nil
}

// jobEnvironment returns the environment of the job: what -V and -v copy, and the
// variables of POSIX, OpenPBS and Torque. It leaves out those that are known only on the
// machine (PBS_NODEFILE, PBS_JOBCOOKIE, PBS_MOMPORT, PBS_GPUFILE).
func (s *JobSubmission) jobEnvironment() []string {
	set := map[string]string{}
	put := func(name, value string) {
		if value != "" {
			set[name] = jobspec.EscapeLiteral(value)
		}
	}
	from := func(name string) string { v, _ := LookUpVariable(s.Caller.Environ, name); return v }
	put("HOME", s.Caller.Home)
	put("USER", s.Caller.User)
	put("LOGNAME", s.Caller.User)
	put("PATH", from("PATH"))
	put("SHELL", s.shellPath())
	if s.exportAll {
		for _, entry := range s.Caller.Environ {
			if name, value, ok := strings.Cut(entry, "="); ok && name != "" && !strings.HasPrefix(name, "PBS_O_") {
				set[name] = jobspec.EscapeLiteral(value)
			}
		}
	}
	for name, v := range s.export {
		set[name] = jobspec.EscapeLiteral(v)
	}
	if s.interactive && s.Shell != "" {
		put("SHELL", s.Shell) // the one that is started
	}
	for _, name := range []string{"HOME", "LANG", "LOGNAME", "MAIL", "PATH", "SHELL", "SYSTEM", "TZ"} {
		put("PBS_O_"+name, from(name))
	}
	s.addPBSVariables(put)
	set["PBS_JOBID"], set["PBS_SERVER"] = s.paths().pbsJobID(), "$(JobHost)" // the node's own name is not known here
	if ref := s.indexReference(); ref != "" {
		set["PBS_ARRAY_INDEX"], set["PBS_ARRAYID"] = ref, ref
		set["PBS_ARRAY_ID"] = "$(JobSeq)[].$(JobHost)"
	}
	out := make([]string, 0, len(set))
	for name, v := range set {
		if !strings.Contains(v, "\x00") {
			out = append(out, name+"="+v)
		}
	}
	slices.Sort(out)
	return out
}

// addPBSVariables adds PBS's own variables.
func (s *JobSubmission) addPBSVariables(put func(name, value string)) {
	queue := cmp.Or(s.Queue, s.reservation, roost.DefaultQueueName) // as qstat shows it
	r := &s.request
	put("PBS_O_SYSTEM", "Linux") // as uname(1) prints it
	put("PBS_VERSION", "Roost-"+roost.Version)
	put("PBS_O_LOGNAME", s.Caller.User)
	put("PBS_O_HOME", s.Caller.Home)
	put("PBS_O_WORKDIR", s.Caller.Dir)
	put("PBS_O_HOST", s.Caller.Host)
	put("PBS_O_QUEUE", queue)
	put("PBS_O_INITDIR", s.Dir)
	put("PBS_QUEUE", queue)
	put("PBS_JOBNAME", s.Name)
	if s.interactive {
		put("PBS_ENVIRONMENT", "PBS_INTERACTIVE")
	} else {
		put("PBS_ENVIRONMENT", "PBS_BATCH")
		put("ENVIRONMENT", "BATCH")
	}
	put("PBS_ACCOUNT", s.Account)
	if !s.ownDirectory {
		put("PBS_JOBDIR", s.paths().workingDirectory())
	}
	threads := strconv.Itoa(r.threads)
	put("NCPUS", threads)
	put("OMP_NUM_THREADS", threads)
	put("PBS_NP", strconv.Itoa(r.processes))
	put("PBS_NUM_PPN", strconv.Itoa(r.gangParts[0].nodeFileLines()))
	for _, name := range []string{"PBS_NUM_NODES", "PBS_NNODES"} {
		put(name, strconv.Itoa(len(r.gangParts)))
	}
	put("PBS_TASKNUM", "1")
	put("PBS_NODENUM", "0")
	put("PBS_VNODENUM", "0")
	if r.walltime > 0 {
		put("PBS_WALLTIME", strconv.FormatInt(wholeSeconds(r.walltime), 10))
	}
}
