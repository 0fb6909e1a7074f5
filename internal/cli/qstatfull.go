package cli

import (
	"fmt"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/wire"
)

// foldAt is the column at which qstat -f breaks lines, at commas.
const foldAt = 78

// attribute is a line of qstat -f.
type attribute struct{ name, value string }

// pbsFull prints everything about each job, an empty line behind each.
func (c *call) pbsFull(list []*wire.JobStatus, wide bool) {
	for _, s := range list {
		var b strings.Builder
		fmt.Fprintf(&b, "Job Id: %s\n", pbsName(s.GetId(), s.GetArray()))
		for _, a := range c.pbsAttributes(s) {
			if a.value == "" {
				continue
			}
			line := "    " + a.name + " = " + printable(a.value)
			if !wide {
				line = fold(line)
			}
			b.WriteString(line + "\n")
		}
		fmt.Fprintln(c.stdout, b.String())
	}
}

// fold breaks a line at commas; what follows stands behind a tab.
func fold(line string) string {
	var b strings.Builder
	width := 0
	for line != "" {
		end := strings.IndexByte(line, ',') + 1
		if end == 0 {
			end = len(line)
		}
		if width > 0 && width+end > foldAt {
			b.WriteString("\n\t")
			width = 8
		}
		b.WriteString(line[:end])
		width += end
		line = line[end:]
	}
	return b.String()
}

// pbsAttributes are what PBS says of a job, as far as Roost knows it. Job_Name is the first, as clients expect it to be.
func (c *call) pbsAttributes(s *wire.JobStatus) []attribute {
	ad, err := classad.Parse(s.GetAd())
	if err != nil || s.GetAd() == "" {
		ad = classad.New()
	}
	text := func(name string) string { t, _ := ad.Str(name); return t }
	_, host, _ := strings.Cut(s.GetId(), ".")
	list := []attribute{{"Job_Name", oneWord(s.GetName())}, {"Job_Owner", s.GetOwner() + "@" + host}}
	if e := s.GetExit(); e != nil {
		list = append(list,
			attribute{"resources_used.cput", clock(time.Duration(e.GetUserCpu() + e.GetSystemCpu()))},
			attribute{"resources_used.mem", kilobytes(peakMemory(e))},
			attribute{"resources_used.walltime", clock(time.Duration(e.GetWall()))})
	} else if s.GetStarted() != 0 && !final(s) {
		if u := s.GetUsage(); u != nil {
			list = append(list, attribute{"resources_used.cput", clock(time.Duration(u.GetUserCpu() + u.GetSystemCpu()))},
				attribute{"resources_used.mem", kilobytes(roost.Bytes(u.GetPeakMemory()))})
		}
		list = append(list, attribute{"resources_used.walltime", clock(c.now().Sub(instant(s.GetStarted())))})
	}
	list = append(list, attribute{"job_state", pbsState(s)}, attribute{"queue", pbsQueue(s)}, attribute{"server", host})
	if s.GetArray() && s.GetState() == "" {
		list = append(list, attribute{"array", "True"})
	}
	list = append(list,
		attribute{"Checkpoint", checkpointLetter(ad)}, attribute{"ctime", c.ctime(s.GetSubmitted())},
		attribute{"Error_Path", pbsPath(s, host, text(roost.AttrErr), text(roost.AttrIwd))},
		attribute{"exec_host", execHost(s)}, attribute{"exec_vnode", execVnode(s)},
		attribute{"Hold_Types", holdTypes(s)}, attribute{"Join_Path", joinPath(ad)},
		attribute{"mtime", c.ctime(max(s.GetSubmitted(), s.GetStarted(), s.GetEnded()))},
		attribute{"Output_Path", pbsPath(s, host, text(roost.AttrOut), text(roost.AttrIwd))},
		attribute{"Priority", fmt.Sprint(s.GetPriority())}, attribute{"qtime", c.ctime(s.GetSubmitted())}, attribute{"Rerunable", rerunnable(ad)})
	list = append(list, resourceList(s, ad)...)
	list = append(list, attribute{"stime", c.ctime(s.GetStarted())}, attribute{"etime", c.ctime(s.GetSubmitted())}, attribute{"comment", c.comment(s)},
		attribute{"Exit_status", exitStatus(s)}, attribute{"run_count", runCount(s)}, attribute{"Submit_Host", host})
	if env, ok := ad.Strings(roost.AttrEnvironment); ok && s.GetOwner() == loginName() { // it may hold secrets
		list = append(list, attribute{"Variable_List", filled(s, strings.Join(env, ","))})
	}
	return list
}

// kilobytes is how PBS writes an amount of memory.
func kilobytes(b roost.Bytes) string { return fmt.Sprintf("%dkb", (b+roost.KiB-1)/roost.KiB) }

// checkpointLetter is the value of -c that a job was submitted with, or could have been.
func checkpointLetter(ad *classad.Ad) string {
	if on, ok := ad.Bool(roost.AttrCheckpoint); ok && !on {
		return "n"
	}
	every, ok := ad.Int(roost.AttrCheckpointEvery)
	switch {
	case !ok:
		return "u"
	case every < 0:
		return "s"
	case every == 0:
		return "c"
	}
	return fmt.Sprintf("c=%d", (every+59)/60)
}

func resourceList(s *wire.JobStatus, ad *classad.Ad) []attribute {
	r := s.GetRequest().Vector()
	list := []attribute{
		{"Resource_List.mem", fmt.Sprintf("%dmb", (r.Memory+roost.MiB-1)/roost.MiB)}, {"Resource_List.ncpus", r.CPU.String()}, {"Resource_List.nodect", "1"},
	}
	if r.GPUs > 0 {
		list = append(list, attribute{"Resource_List.ngpus", fmt.Sprint(r.GPUs)})
	}
	if r.GPUMemory > 0 {
		list = append(list, attribute{"Resource_List.gpu_mem", fmt.Sprintf("%dmb", (r.GPUMemory+roost.MiB-1)/roost.MiB)})
	}
	if seconds, ok := ad.Int(roost.AttrWalltime); ok && seconds > 0 {
		list = append(list, attribute{"Resource_List.walltime", clock(time.Duration(seconds) * time.Second)})
	}
	return list
}

// ctime is a time as ctime(3) writes it.
func (c *call) ctime(ns int64) string {
	if ns == 0 {
		return ""
	}
	return instant(ns).In(c.now().Location()).Format("Mon Jan _2 15:04:05 2006")
}

// filled puts what is known of a job in the places that its ad leaves open; of an array's tasks, PBS's own word for their number.
func filled(s *wire.JobStatus, text string) string {
	id, task, index := s.GetId(), "", "^array_index^"
	number, host, _ := strings.Cut(id, ".")
	number, task, _ = strings.Cut(number, "[")
	if task = strings.TrimSuffix(task, "]"); task != "" {
		index = task
	} else if !s.GetArray() {
		index = "0"
	}
	if s.GetArray() && task == "" {
		id = number + "[" + index + "]." + host
	}
	return strings.NewReplacer("$$", "$", "$(JobId)", id, "$(JobSeq)", number, "$(TaskIndex)", index, "$(ArrayIndex)", index).Replace(text)
}

func pbsPath(s *wire.JobStatus, host, path, iwd string) string {
	if path == "" {
		return ""
	}
	if !strings.HasPrefix(path, "/") {
		path = strings.TrimSuffix(iwd, "/") + "/" + path
	}
	return host + ":" + filled(s, path)
}

func execHost(s *wire.JobStatus) string {
	if s.GetNode() == "" {
		return ""
	}
	return fmt.Sprintf("%s/0*%d", s.GetNode(), max((s.GetRequest().GetMilliCpu()+999)/1000, 1))
}

func holdTypes(s *wire.JobStatus) string {
	switch stateOf(s) {
	case roost.Held.String():
		return "u"
	case roost.Blocked.String():
		return "s"
	}
	return "n"
}

func joinPath(ad *classad.Ad) string {
	if join, _ := ad.Bool(roost.AttrJoinOutput); join {
		return "oe"
	}
	return "n"
}

func rerunnable(ad *classad.Ad) string {
	if again, ok := ad.Bool(roost.AttrRerunnable); ok && !again {
		return "False"
	}
	return "True"
}

func runCount(s *wire.JobStatus) string {
	if s.GetAttempt() == 0 {
		return ""
	}
	return fmt.Sprint(s.GetAttempt())
}
