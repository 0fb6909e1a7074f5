package pbs

import (
	"math"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/submit"
)

// columnIndex is the column of the array index; "$(TaskIndex)" serves where both are the same.
const columnIndex = "ArrayIndex"

// result builds the job.
func (s *submission) result() (Result, error) {
	if s.fromFile && !plainName(s.name) || len(s.name) > 230 {
		return Result{}, illegal('N')
	}
	if s.array != nil && s.noRerun {
		return Result{}, refuse("cannot submit non-rerunable Array Job", exitUsage)
	}
	if s.array == nil && s.atOnce > 0 {
		return Result{}, refuse("max_run_subjobs can only be set on an array job", exitUsage)
	}
	ad := classad.New()
	job := submit.Job{Name: s.name, Label: s.name, Ad: ad, Count: 1}
	if s.array != nil {
		job.Count, job.Array = s.array.count, true
		job.Columns = s.indexColumn(ad)
	}
	ad.SetString(roost.AttrMyType, "Job")
	ad.SetString(roost.AttrJobName, submit.Literal(s.name))
	ad.SetInt(roost.AttrTaskCount, int64(job.Count))
	if err := s.setProgram(ad); err != nil {
		return Result{}, err
	}
	s.setPaths(ad)
	s.setRequest(ad)
	if err := s.setGpus(ad); err != nil {
		return Result{}, err
	}
	ad.SetStrings(roost.AttrEnvironment, s.environment())
	return Result{Job: job, Queue: s.queue, Server: s.server, Quiet: s.quiet, Block: s.block}, nil
}

// indexColumn maps tasks to array indexes.
func (s *submission) indexColumn(ad *classad.Ad) []submit.Column {
	if s.array.list == nil {
		ad.SetString(roost.AttrArrayIndex, strconv.Itoa(s.array.first)+":"+strconv.Itoa(s.array.step))
		if s.array.first == 0 && s.array.step == 1 {
			return nil
		}
	}
	values := make([]string, s.array.count)
	for i := range values {
		values[i] = strconv.Itoa(s.array.index(i))
	}
	return []submit.Column{{Name: columnIndex, Values: values}}
}

// indexRef stands for the array index in the texts of the ad, or is empty.
func (s *submission) indexRef() string {
	switch {
	case s.array == nil:
		return ""
	case s.array.list == nil && s.array.first == 0 && s.array.step == 1:
		return "$(TaskIndex)"
	}
	return "$(" + columnIndex + ")"
}

// setProgram sets the script with its shell, or the command behind "--".
func (s *submission) setProgram(ad *classad.Ad) error {
	home := s.caller.Home
	if s.dir != "" {
		home = s.absolute(s.dir)
	}
	ad.SetString(roost.AttrIwd, submit.Literal(home))
	if s.command == nil {
		if strings.TrimSpace(s.script) == "" {
			return refuse("Job has no script", exitScript)
		}
		ad.SetString(roost.AttrScript, s.script)
		ad.SetString(roost.AttrShell, s.shellPath())
		return nil
	}
	program := s.command[0]
	if !strings.Contains(program, "/") && s.caller.Look != nil {
		if found, err := s.caller.Look(program); err == nil {
			program = found
		}
	} else {
		program = s.absolute(program)
	}
	ad.SetString(roost.AttrCmd, submit.Literal(program))
	arguments := make([]string, len(s.command)-1)
	for i, a := range s.command[1:] {
		arguments[i] = submit.Literal(a)
	}
	if len(arguments) > 0 {
		ad.SetStrings(roost.AttrArguments, arguments)
	}
	return nil
}

// shellPath is -S, else PBS_SHELL, else the user's login shell, else sh.
func (s *submission) shellPath() string {
	if s.shell != "" {
		return s.shell
	}
	for _, name := range []string{"PBS_SHELL", "SHELL"} {
		if sh, ok := lookup(s.caller.Environ, name); ok && strings.HasPrefix(sh, "/") {
			return sh
		}
	}
	return "/bin/sh"
}

func (s *submission) absolute(p string) string {
	if path.IsAbs(p) {
		return path.Clean(p)
	}
	return path.Join(s.caller.Dir, p)
}

// setPaths says where output goes. With -j the streams meet in the file of the first letter.
func (s *submission) setPaths(ad *classad.Ad) {
	out, err := s.outputPath(s.out, 'o', ".OU"), s.outputPath(s.err, 'e', ".ER")
	join := s.join != ""
	switch s.join {
	case "":
		ad.SetString(roost.AttrErr, err)
	case "eo":
		out = err
	}
	ad.SetString(roost.AttrOut, out)
	ad.SetBool(roost.AttrJoinOutput, join)
	ad.SetBool(roost.AttrKeepOutput, true) // clients take the files' being there for the end of the job
	ad.SetString(roost.AttrTransfer, "auto")
	if s.umask != 0 {
		ad.SetInt(roost.AttrUmask, s.umask)
	}
}

// outputPath is where one stream goes, as an ad holds it.
func (s *submission) outputPath(given string, letter byte, suffix string) string {
	dir := s.caller.Dir
	standard := submit.Literal(s.name) + "." + string(letter) + "$(JobSeq)"
	if ref := s.indexRef(); ref != "" {
		standard += "." + ref
	}
	if strings.IndexByte(s.keep, letter) >= 0 && strings.IndexByte(s.keep, 'd') < 0 {
		return submit.Literal(s.caller.Home) + "/" + standard
	}
	if given == "" {
		return submit.Literal(strings.TrimSuffix(dir, "/")) + "/" + standard
	}
	if host, p, ok := strings.Cut(given, ":"); ok && host != "" && !strings.Contains(host, "/") && p != "" && (strings.HasPrefix(p, "/") || host == s.caller.Host) {
		given = p
	}
	folder := strings.HasSuffix(given, "/")
	full := s.absolute(given)
	if folder || s.caller.IsDir != nil && !strings.ContainsAny(given, "$^") && s.caller.IsDir(full) {
		return s.expand(full) + "/" + s.jobID() + suffix
	}
	return s.expand(full)
}

// expand replaces what OpenPBS replaces in a path.
func (s *submission) expand(p string) string {
	index := s.indexRef()
	return strings.NewReplacer("${PBS_JOBID}", s.jobID(), "$PBS_JOBID", s.jobID(), "^array_index^", index, "${PBS_ARRAY_INDEX}", index, "$PBS_ARRAY_INDEX", index,
		"${PBS_ARRAYID}", index, "$PBS_ARRAYID", index, "${PBS_JOBNAME}", submit.Literal(s.name), "$PBS_JOBNAME", submit.Literal(s.name), "$", "$$").Replace(p)
}

// jobID is PBS's id of the job, or of the subjob.
func (s *submission) jobID() string {
	if ref := s.indexRef(); ref != "" {
		return "$(JobSeq)[" + ref + "]." + submit.Literal(s.caller.Host)
	}
	return "$(JobId)"
}

// setRequest sets resources, and what decides when the job runs.
func (s *submission) setRequest(ad *classad.Ad) {
	d := submit.StandardDefaults()
	cpus, memory := int64(max(s.cpus, 1)), s.memory
	if memory == 0 {
		memory = d.Memory
	}
	ad.SetInt(roost.AttrRequestCpus, cpus)
	ad.SetInt(roost.AttrRequestMemory, int64((memory-1)/roost.MiB)+1)
	ad.SetInt(roost.AttrRequestDisk, 0)
	ad.SetInt(roost.AttrWalltime, int64(math.Ceil(s.walltime.Seconds())))
	if s.host != "" {
		e, err := classad.ParseExpr("TARGET.Machine == " + classad.StringValue(s.host).String() + " || TARGET.Name == " + classad.StringValue(s.host).String())
		if err != nil {
			panic(err)
		}
		ad.Insert(roost.AttrRequirements, e)
	}
	ad.SetString(roost.AttrBand, d.Band.String())
	ad.SetInt(roost.AttrPriority, int64(s.priority))
	if s.account != "" {
		ad.SetString(roost.AttrGroup, s.account)
	}
	if s.queue != "" {
		ad.SetString(roost.AttrQueue, s.queue)
	}
	if s.start.After(s.caller.Now) {
		ad.SetInt(roost.AttrStartAfter, s.start.Unix())
	}
	if s.held {
		ad.SetBool(roost.AttrHoldOnSubmit, true)
	}
	ad.SetBool(roost.AttrRerunnable, !s.noRerun)
	s.setSaving(ad)
	if s.atOnce > 0 {
		ad.SetInt(roost.AttrMaxRunning, int64(s.atOnce))
	}
	ad.SetInt(roost.AttrMaxRetries, 0)
	ad.SetInt(roost.AttrNotice, int64(d.Notice.Seconds()))
	ad.SetInt(roost.AttrJobLease, int64(d.Lease.Seconds()))
	if len(s.depends) > 0 {
		ad.SetStrings(roost.AttrDependsOn, s.depends)
	}
}

// setGpus sets the GPUs, their memory, and the class of the application. Memory without a number of GPUs means one.
func (s *submission) setGpus(ad *classad.Ad) error {
	gpus := s.gpus
	if s.gpuMemory > 0 {
		if s.noGpus {
			return refuse("Illegal attribute or resource value Resource_List.gpu_mem: it is memory of each GPU, and ngpus=0 asks for none", exitIllegalValue)
		}
		gpus = max(gpus, 1)
		ad.SetInt(roost.AttrRequestGpuMem, int64((s.gpuMemory-1)/roost.MiB)+1)
	}
	ad.SetInt(roost.AttrRequestGpus, int64(gpus))
	if s.class == roost.AppStream {
		ad.SetString(roost.AttrAppClass, s.class)
	}
	return nil
}

// environment is what the job finds: what -V and -v take along, and the variables of POSIX, OpenPBS and Torque.
func (s *submission) environment() []string {
	set := map[string]string{}
	from := func(name string) string { v, _ := lookup(s.caller.Environ, name); return v }
	if s.exportAll {
		for _, entry := range s.caller.Environ {
			if name, value, ok := strings.Cut(entry, "="); ok && name != "" && !strings.HasPrefix(name, "PBS_O_") {
				set[name] = submit.Literal(value)
			}
		}
	}
	for name, v := range map[string]string{"HOME": s.caller.Home, "USER": s.caller.User, "LOGNAME": s.caller.User, "PATH": from("PATH"), "SHELL": s.shellPath()} {
		if _, there := set[name]; !there && v != "" {
			set[name] = submit.Literal(v)
		}
	}
	for name, v := range s.export {
		set[name] = submit.Literal(v)
	}
	for _, name := range []string{"HOME", "LANG", "LOGNAME", "MAIL", "PATH", "SHELL", "SYSTEM", "TZ"} {
		if v := from(name); v != "" {
			set["PBS_O_"+name] = submit.Literal(v)
		}
	}
	queue := s.queue
	if queue == "" {
		queue = "workq"
	}
	cpus := strconv.Itoa(max(s.cpus, 1))
	for name, v := range map[string]string{
		"PBS_O_WORKDIR": s.caller.Dir, "PBS_O_HOST": s.caller.Host, "PBS_O_QUEUE": queue, "PBS_O_LOGNAME": s.caller.User, "PBS_O_HOME": s.caller.Home,
		"PBS_QUEUE": queue, "PBS_JOBNAME": s.name, "PBS_ENVIRONMENT": "PBS_BATCH", "ENVIRONMENT": "BATCH", "PBS_SERVER": s.caller.Host,
		"NCPUS": cpus, "OMP_NUM_THREADS": cpus, "PBS_NP": cpus, "PBS_NUM_PPN": cpus, "PBS_NUM_NODES": "1", "PBS_NODENUM": "0", "PBS_TASKNUM": "1",
	} {
		set[name] = submit.Literal(v)
	}
	set["PBS_JOBID"] = s.jobID()
	if ref := s.indexRef(); ref != "" {
		set["PBS_ARRAY_INDEX"], set["PBS_ARRAYID"] = ref, ref
		set["PBS_ARRAY_ID"] = "$(JobSeq)[]." + submit.Literal(s.caller.Host)
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
