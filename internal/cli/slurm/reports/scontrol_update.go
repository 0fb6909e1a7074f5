package reports

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/slurm/hostlist"
	"github.com/roost-batch/roost/internal/slurm/records"
	"github.com/roost-batch/roost/internal/slurm/sbatch"
	"github.com/roost-batch/roost/internal/wire/scheddapi"
)

// update changes jobs as the words say: "jobid=12 timelimit=+10".
func (r *scontrolRun) update(words []string) error {
	if len(words) == 0 {
		return r.exit("too few arguments for update keyword")
	}
	ids := ""
	var pairs [][2]string
	for _, word := range words {
		key, value, ok := strings.Cut(word, "=")
		if !ok {
			return r.exit("Invalid input: " + word)
		}
		switch key = strings.ToLower(key); key {
		case "job", "jobid", "jobname":
			if key == "jobname" {
				pairs = append(pairs, [2]string{key, value})
				continue
			}
			ids = value
		default:
			pairs = append(pairs, [2]string{key, value})
		}
	}
	if ids == "" {
		return r.exit("No valid entity in update command\nInput line must include \"NodeName\", \"PartitionName\", " +
			"\"Reservation\", \"JobId\", or \"SlurmctldDebug\"")
	}
	if len(pairs) == 0 {
		return r.exit("No changes specified")
	}
	for _, p := range pairs {
		if findUpdateKey(p[0]) == nil {
			return r.exit("Update of this parameter is not supported: " + wordOf(words, p[0]) + "\nRequest aborted")
		}
	}
	jobs, err := r.find(ids, false)
	if err != nil && !errors.Is(err, roost.NotFound) {
		return failWith(r.Invocation, err)
	}
	return r.updateEach(ids, jobs, pairs)
}

// valueError is a value of update that cannot be read.
type valueError string

func (e valueError) Error() string { return string(e) }

// wordOf is the word with a key, as it was written.
func wordOf(words []string, key string) string {
	i := slices.IndexFunc(words, func(w string) bool {
		name, _, _ := strings.Cut(w, "=")
		return strings.EqualFold(name, key)
	})
	return document.PrintableText(words[i])
}

// updateEach changes each job of the ids.
func (r *scontrolRun) updateEach(ids string, jobs []*records.Job, pairs [][2]string) error {
	failed := false
	for _, text := range splitIDs(ids) {
		id, ok := parseJobID(text)
		i := slices.IndexFunc(jobs, func(j *records.Job) bool { return ok && id.includes(j) && !j.IsFinal() })
		ended := slices.IndexFunc(jobs, func(j *records.Job) bool { return ok && id.includes(j) })
		var err error
		switch {
		case i >= 0:
			err = r.updateJob(jobs[i], pairs)
		case ended >= 0:
			err = errors.New("Job has already finished")
		default:
			err = errors.New("Invalid job id specified")
		}
		var bad valueError
		if errors.As(err, &bad) { // it is the command's own mistake, and no job's
			return fail(r.Invocation, err.Error())
		}
		if err != nil {
			failed = true
			fmt.Fprintf(r.Stderr, "%s for job %s\n", err, text)
		}
	}
	if failed {
		return frame.ExitError(failure)
	}
	return nil
}

// jobUpdate is what is to be changed of a job.
type jobUpdate struct {
	job     *records.Job
	now     time.Time
	changes *classad.Ad
	record  *classad.Ad // its request in Slurm's words; nil: it is not changed
	held    string      // "hold" or "release"; empty: neither

	isPartition, isMachine func(name string) bool
}

// updateJob changes one job. A task of an array is changed with all others of it.
func (r *scontrolRun) updateJob(j *records.Job, pairs [][2]string) error {
	u := &jobUpdate{job: j, now: r.Now(), changes: classad.New(), isPartition: func(name string) bool {
		return slices.ContainsFunc(partitions(r.Invocation), func(p partition) bool { return p.name == name })
	}, isMachine: func(name string) bool {
		all, err := machines(r.Invocation)
		return err != nil || slices.ContainsFunc(all, func(n document.Node) bool {
			return wantsNode([]string{name}, n.Name)
		})
	}}
	for _, p := range pairs {
		if err := u.set(p[0], p[1]); err != nil {
			return err
		}
	}
	if u.record != nil {
		u.changes.SetAd(roost.AttrSlurm, u.record)
	}
	req := &scheddapi.ActRequest{Verb: scheddapi.ActRequest_ALTER,
		Alteration: &scheddapi.Alteration{Changes: u.changes.String(), Basis: -1, Hold: u.held},
		Selection:  &scheddapi.Selection{Selectors: []string{j.ArrayID()}}}
	var reply *scheddapi.ActReply
	err := r.CallSchedd(frame.SubmitTimeout, func(ctx context.Context, s *scheddapi.ScheddClient) (err error) {
		reply, err = s.Act(ctx, req)
		return frame.DecodeError(err)
	})
	if err != nil {
		return errors.New(strings.Join(strings.Fields(frame.ErrorText(err)), " "))
	}
	return refusalOf(reply)
}

// put sets a text of the request; an empty one is taken away.
func (u *jobUpdate) put(name, value string) {
	if u.record == nil {
		u.record = classad.New()
		if old, ok := u.job.Ad.Sub(roost.AttrSlurm); ok {
			u.record = old.Copy()
		}
	}
	if u.record.Delete(name); value != "" {
		u.record.SetString(name, value)
	}
}

// errNotSupported is Slurm's refusal of a change that cannot be made.
var errNotSupported = errors.New("Update of this parameter is not supported")

// updateKeys are the keys of update, in small letters.
func updateKeys() map[string]func(u *jobUpdate, value string) error {
	text := func(attribute string) func(*jobUpdate, string) error {
		return func(u *jobUpdate, value string) error {
			if value == "" {
				return errors.New("Invalid job parameter")
			}
			u.changes.SetString(attribute, value)
			return nil
		}
	}
	return map[string]func(*jobUpdate, string) error{
		"timelimit": (*jobUpdate).setTimeLimit, "priority": (*jobUpdate).setPriority, "nice": (*jobUpdate).setNice,
		"partition": (*jobUpdate).setPartition, "numcpus": (*jobUpdate).setCPUs, "numtasks": (*jobUpdate).setTasks,
		"numnodes": (*jobUpdate).setNodes,
		"account":  text(roost.AttrGroup), "name": text(roost.AttrJobName),
		"jobname": text(roost.AttrJobName), "arraytaskthrottle": (*jobUpdate).setThrottle,
		"requeue": (*jobUpdate).setRequeue, "starttime": (*jobUpdate).setStart,
		"eligibletime": (*jobUpdate).setStart,
		"comment":      func(u *jobUpdate, value string) error { u.put("Comment", value); return nil },
		"qos": func(_ *jobUpdate, value string) error {
			if value != "normal" {
				return errors.New("Invalid qos specification")
			}
			return nil
		},
		"minmemorynode": (*jobUpdate).setMemory, "dependency": (*jobUpdate).setDependency,
		"licenses": (*jobUpdate).setLicenses, "minmemorycpu": (*jobUpdate).setMemoryPerCPU,
		"features":    func(u *jobUpdate, value string) error { return u.setPlaces(sbatch.RecordFeatures, value) },
		"excnodelist": func(u *jobUpdate, value string) error { return u.setMachines(sbatch.RecordExcluded, value) },
		"reqnodelist": func(u *jobUpdate, value string) error { return u.setMachines(sbatch.RecordNodes, value) },
		"nodelist":    func(u *jobUpdate, value string) error { return u.setMachines(sbatch.RecordNodes, value) },
		"wckey":       func(*jobUpdate, string) error { return nil },
		"gres":        (*jobUpdate).setGPUs,
		"shared":      refuseOperators, "oversubscribe": refuseOperators, "contiguous": refuseOperators,
		"deadline": refuseOperators, "admincomment": refuseOperators, "sitefactor": refuseOperators,
	}
}

// refuseOperators is for what only operators of Slurm change.
func refuseOperators(*jobUpdate, string) error { return errors.New("Access/permission denied") }

// setMachines sets machines that the job wants, or must not have.
func (u *jobUpdate) setMachines(name, value string) error {
	hosts, err := hostlist.Expand(value)
	if err != nil || slices.ContainsFunc(hosts, func(h string) bool { return !u.isMachine(h) }) {
		return errors.New("Invalid node name specified")
	}
	if name == sbatch.RecordNodes && (len(hosts) > 1 || u.job.NodeCount() > 1) {
		return errNotSupported
	}
	return u.setPlaces(name, value)
}

// setPlaces sets a condition for the machines of a job that waits.
func (u *jobUpdate) setPlaces(name, value string) error {
	if u.job.State != "PENDING" {
		return errNotPending
	}
	u.put(name, value)
	ok, err := sbatch.ReplacePlaces(u.changes, u.record)
	switch {
	case err != nil:
		return errors.New("Invalid feature specification")
	case !ok:
		return errNotSupported
	}
	return nil
}

// setMemoryPerCPU sets the memory of a job of one machine by that of a processor.
func (u *jobUpdate) setMemoryPerCPU(value string) error {
	megabytes, ok := sbatch.ParseMegabytes(value)
	if !ok || megabytes == 0 {
		return errors.New("Invalid MinMemoryCPU value")
	}
	return u.setMemory(strconv.FormatInt(megabytes*max(u.job.CPUs(), 1), 10))
}

// setGPUs sets the GPUs of a job of one machine that waits: "gpu:2".
func (u *jobUpdate) setGPUs(value string) error {
	text, isGPU := strings.CutPrefix(strings.TrimPrefix(value, "gres:"), "gpu:")
	n, err := strconv.ParseUint(text, 10, 16)
	switch {
	case value != "" && (!isGPU || err != nil):
		return errors.New("Invalid generic resource (gres) specification")
	case u.job.State != "PENDING":
		return errNotPending
	case u.job.NodeCount() > 1:
		return errNotSupported
	}
	u.changes.SetInt(roost.AttrRequestGpus, int64(n))
	return nil
}

// set takes in one pair. Keys may be shortened as long as it is clear which is meant.
func (u *jobUpdate) set(key, value string) error { return findUpdateKey(key)(u, value) }

// findUpdateKey finds what a key changes; nil: it is not known, or not clear.
func findUpdateKey(key string) func(*jobUpdate, string) error {
	keys := updateKeys()
	if apply := keys[key]; apply != nil {
		return apply
	}
	var found []string
	for name := range keys {
		if len(key) >= 3 && strings.HasPrefix(name, key) {
			found = append(found, name)
		}
	}
	if len(found) != 1 {
		return nil
	}
	return keys[found[0]]
}

func (u *jobUpdate) setPartition(value string) error {
	if !u.isPartition(value) {
		return errors.New("Invalid partition name specified")
	}
	u.changes.SetString(roost.AttrQueue, value)
	return nil
}

// setCPUs sets the processors of a job of one machine that waits.
func (u *jobUpdate) setCPUs(value string) error {
	least, _, _ := strings.Cut(value, "-")
	n, err := strconv.ParseUint(least, 10, 20)
	switch {
	case err != nil || n == 0:
		return errors.New("Invalid NumCPUs value")
	case u.job.State != "PENDING":
		return errNotPending
	case u.job.NodeCount() > 1:
		return errNotSupported
	}
	u.changes.SetInt(roost.AttrRequestCpus, int64(n))
	return nil
}

// setTasks sets the tasks of the steps, and the processors with them.
func (u *jobUpdate) setTasks(value string) error {
	n, err := strconv.ParseUint(value, 10, 20)
	switch {
	case err != nil || n == 0:
		return errors.New("Invalid NumTasks value")
	case u.job.State != "PENDING":
		return errNotPending
	}
	perTask := max(u.job.CPUs()/max(u.job.Tasks(), 1), 1)
	if err := u.setCPUs(strconv.FormatInt(int64(n)*perTask, 10)); err != nil {
		return err
	}
	u.put("NumTasks", "")
	u.record.SetInt("NumTasks", int64(n))
	return nil
}

// setNodes takes the number of machines that the job asks for already: their layout is
// part of the request.
func (u *jobUpdate) setNodes(value string) error {
	least, _, _ := strings.Cut(value, "-")
	n, err := strconv.Atoi(least)
	switch {
	case err != nil || n < 1:
		return errors.New("Invalid NumNodes value")
	case u.job.State != "PENDING":
		return errNotPending
	case n != u.job.NodeCount():
		return errNotSupported
	}
	return nil
}

// errNotPending is Slurm's refusal of a change that has to come before the start.
var errNotPending = errors.New("Job is no longer pending execution")

func (u *jobUpdate) setTimeLimit(value string) error {
	sign := ""
	if strings.HasPrefix(value, "+") || strings.HasPrefix(value, "-") && value != "-1" {
		sign, value = value[:1], value[1:]
	}
	limit, unlimited, ok := sbatch.ParseTime(value)
	switch {
	case !ok:
		return valueError("Invalid TimeLimit value")
	case unlimited:
		u.changes.SetValue(roost.AttrWalltime, classad.UndefinedValue())
		return nil
	case sign == "+":
		limit = u.job.Limit() + limit
	case sign == "-" && limit > u.job.Limit():
		return valueError(fmt.Sprintf("TimeLimit decrement larger than current time limit (%d > %d)",
			int64(limit.Minutes()), int64(u.job.Limit().Minutes())))
	case sign == "-":
		limit = u.job.Limit() - limit
	}
	if limit <= 0 {
		return valueError("Invalid TimeLimit value")
	}
	u.changes.SetInt(roost.AttrWalltime, int64((limit + time.Minute - 1).Truncate(time.Minute).Seconds()))
	return nil
}

// setPriority sets the place of the job among those of its user; 0 holds it.
func (u *jobUpdate) setPriority(value string) error {
	n, err := strconv.ParseUint(value, 10, 32)
	switch {
	case err != nil:
		return errors.New("Invalid Priority value")
	case n == 0:
		u.held = "hold"
		return nil
	}
	if u.job.Priority() == 0 {
		u.held = "release"
	}
	u.changes.SetInt(roost.AttrPriority, min(max(int64(n)-records.BasePriority, roost.MinPriority), roost.MaxPriority))
	return nil
}

func (u *jobUpdate) setNice(value string) error {
	n, err := strconv.ParseInt(value, 10, 32)
	if err != nil {
		return errors.New("Invalid nice value")
	}
	u.put("Nice", "")
	u.record.SetInt("Nice", n)
	u.changes.SetInt(roost.AttrPriority, min(max(-n, roost.MinPriority), roost.MaxPriority))
	return nil
}

func (u *jobUpdate) setThrottle(value string) error {
	n, err := strconv.ParseUint(value, 10, 31)
	switch {
	case err != nil:
		return errors.New("Invalid ArrayTaskThrottle value")
	case !u.job.IsArray:
		return errors.New("Invalid job array specification")
	case n == 0:
		u.changes.SetValue(roost.AttrMaxRunning, classad.UndefinedValue())
	default:
		u.changes.SetInt(roost.AttrMaxRunning, int64(n))
	}
	return nil
}

func (u *jobUpdate) setRequeue(value string) error {
	if value != "0" && value != "1" {
		return errors.New("Invalid Requeue value")
	}
	u.changes.SetBool(roost.AttrRerunnable, value == "1")
	return nil
}

func (u *jobUpdate) setStart(value string) error {
	at, ok := sbatch.ParseBegin(value, u.now)
	if !ok {
		return errors.New("Invalid time specification")
	}
	if !at.After(u.now) {
		u.changes.SetValue(roost.AttrStartAfter, classad.UndefinedValue())
		return nil
	}
	u.changes.SetInt(roost.AttrStartAfter, at.Unix())
	return nil
}

// setMemory sets the memory of a job of one machine.
func (u *jobUpdate) setMemory(value string) error {
	megabytes, ok := sbatch.ParseMegabytes(value)
	switch {
	case !ok || megabytes == 0:
		return errors.New("Invalid MinMemoryNode value")
	case u.job.NodeCount() > 1:
		return errNotSupported
	}
	u.changes.SetInt(roost.AttrRequestMemory, megabytes)
	return nil
}

func (u *jobUpdate) setDependency(value string) error {
	list, isSingleton, err := sbatch.ParseDependencies(value)
	if isSingleton {
		err = errors.New("singleton can be given at submit only: sbatch --dependency=singleton")
	}
	if err != nil {
		return err
	}
	if len(list) == 0 {
		u.changes.SetValue(roost.AttrDependsOn, classad.UndefinedValue())
		return nil
	}
	u.changes.SetStrings(roost.AttrDependsOn, list)
	return nil
}

func (u *jobUpdate) setLicenses(value string) error {
	limits, ok := sbatch.ParseLicenses(value)
	if !ok {
		return errors.New("Invalid license specification")
	}
	if u.put("Licenses", value); limits == "" {
		u.changes.SetValue(roost.AttrLimits, classad.UndefinedValue())
		return nil
	}
	u.changes.SetString(roost.AttrLimits, limits)
	return nil
}
