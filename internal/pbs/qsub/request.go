package qsub

import (
	"slices"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/submit/jobspec"
)

// resourceRequest is what the job requests of machines.
type resourceRequest struct {
	gangParts     []resourceChunk // one for each machine; the first one runs the script
	scatter       bool            // each part on a machine of its own
	exclusive     bool            // on exclusive machines
	placementSet  string          // attribute that the machines must share; "" for none
	processes     int             // lines of the node file
	threads       int             // of the first process
	chunks        int
	selection     string      // the chunks in the form of -l select
	place         string      // the placement in the form of -l place
	virtualMemory roost.Bytes // address space of the first part's processes; 0: unlimited
	walltime      time.Duration
	appClass      string // app_class
}

// buildRequest builds the request from the chunks. Their resources were validated one by
// one.
func (s *JobSubmission) buildRequest() error {
	chunks, at, err := s.requestedChunks()
	if err != nil {
		return err
	}
	if err := s.checkProperties(chunks); err != nil {
		return err
	}
	r := &s.request
	if r.gangParts, err = s.layOutChunks(chunks, at); err != nil {
		return err
	}
	r.gangParts[0].processes = max(r.gangParts[0].nodeFileLines(), 1) // the part that runs the script has a line
	for i := range r.gangParts {
		c := &r.gangParts[i]
		if c.cpus > maxCount || c.gpus > maxCount {
			return illegalResourceError("ncpus", "the chunks together have more than any machine")
		}
		if c.gpuMemory > 0 && c.gpus == 0 {
			if c.noGpus {
				return illegalResourceError("gpu_mem", "it is memory of each GPU, and ngpus=0 asks for none")
			}
			c.gpus = 1
		}
		r.processes += c.nodeFileLines()
	}
	r.virtualMemory = r.gangParts[0].virtualMemory
	if r.threads = r.gangParts[0].threads; r.threads == 0 {
		r.threads = max(r.gangParts[0].cpus, 1)
	}
	return s.buildJobWideRequest()
}

// requestedChunks returns the chunks of -l select or -l nodes. Otherwise it is one chunk
// of the other resources.
func (s *JobSubmission) requestedChunks() (chunks []resourceChunk, at chunkPlacement, err error) {
	if v, ok := s.ResourceValues["select"]; ok {
		if chunks, err = parseSelect(v); err != nil {
			return nil, at, err
		}
		at.arrangement = "free"
		s.request.selection, s.request.place = v, at.arrangement
		if p, ok := s.ResourceValues["place"]; ok {
			at, err = parsePlace(p)
			s.request.place = p
		}
		if err == nil {
			err = s.resolveMachines(chunks)
		}
		s.makeExclusive(&at)
		return chunks, at, err
	}
	at.arrangement = "pack"
	chunks = []resourceChunk{newChunk()}
	if v, ok := s.ResourceValues["nodes"]; ok {
		if chunks, err = parseNodes(v); err != nil {
			return nil, at, err
		}
		at.arrangement = "scatter"
		_, at.sharingMode, _ = strings.Cut(v, "#")
	} else if v, ok := s.ResourceValues["procs"]; ok { // Torque's word for CPUs wherever they are
		chunks[0].cpus, _ = parseCount(v)
		chunks[0].processes, chunks[0].selectWords = chunks[0].cpus, []string{"mpiprocs=" + v}
	}
	for _, name := range SortedNames(ChunkResources) {
		if v, ok := s.ResourceValues[name]; ok {
			addJobWideShare(chunks, name, v)
		}
	}
	for _, name := range s.machineAttributes() {
		for i := range chunks {
			chunks[i].setResource(name, s.ResourceValues[name]) // it was looked at
			chunks[i].selectWords = append(chunks[i].selectWords, name+"="+s.ResourceValues[name])
		}
	}
	if err := s.resolveMachines(chunks); err != nil {
		return nil, at, err
	}
	texts := make([]string, len(chunks))
	for i, c := range chunks {
		texts[i] = c.selectText()
	}
	s.request.selection, s.request.place = strings.Join(texts, "+"), at.arrangement
	if at.sharingMode != "" {
		s.request.place += ":" + at.sharingMode
	}
	s.makeExclusive(&at)
	return chunks, at, nil
}

// makeExclusive applies Torque's -n, unless the sharing of machines is stated otherwise.
func (s *JobSubmission) makeExclusive(at *chunkPlacement) {
	if s.exclusive && at.sharingMode == "" {
		at.sharingMode = "excl"
		s.request.place += ":excl"
	}
}

// buildJobWideRequest builds the part of the request that is about the whole job.
func (s *JobSubmission) buildJobWideRequest() error {
	r := &s.request
	length := func(name string) time.Duration { d, _ := parseDuration(s.ResourceValues[name]); return d }
	for _, name := range []string{"pmem", "pvmem"} { // of each process
		size, ok := parseSize(s.ResourceValues[name])
		for i := range r.gangParts {
			if c := &r.gangParts[i]; ok && c.memoryLimit() == 0 {
				n := roost.Bytes(max(c.nodeFileLines(), 1))
				if size > 1<<62/n {
					return illegalResourceError(name, "")
				}
				c.memory = size * n
			}
		}
	}
	low, high := length("min_walltime"), length("max_walltime")
	if r.walltime = length("walltime"); r.walltime == 0 {
		r.walltime = high
	}
	_, bounded := s.ResourceValues["max_walltime"]
	_, least := s.ResourceValues["min_walltime"]
	switch w, given := s.ResourceValues["walltime"]; {
	case given && r.walltime == 0:
		return illegalResourceError("walltime", w+" is no time to do anything in")
	case bounded && !least:
		return refusalf("Cannot have \"max_walltime\" without \"min_walltime\"", exitMaxWithoutMin)
	case least && bounded && low > high:
		return refusalf("\"min_walltime\" can not be greater than \"max_walltime\"", exitMinAboveMax)
	case least && given:
		return illegalResourceError("min_walltime",
			"write min_walltime, with a max_walltime that is not less, instead of walltime")
	}
	for _, name := range []string{"cput", "pcput"} {
		if v, given := s.ResourceValues[name]; given && length(name) == 0 {
			return illegalResourceError(name, v+" is no time to do anything in")
		}
	}
	if r.appClass = s.ResourceValues["app_class"]; r.appClass != "" && r.appClass != roost.AppBatch &&
		r.appClass != roost.AppStream {
		return illegalResourceError("app_class", "app_class is batch or stream")
	}
	return nil
}

// setRequest writes the request of the first chunk into the ad, and returns the columns
// in which the others differ.
func (s *JobSubmission) setRequest(ad *classad.Ad) []jobspec.TaskColumn {
	r, first := &s.request, &s.request.gangParts[0]
	ad.SetInt(roost.AttrRequestCpus, int64(max(first.cpus, 1)))
	ad.SetInt(roost.AttrRequestMemory, int64(first.memoryRequest()/roost.MiB))
	ad.SetInt(roost.AttrRequestDisk, int64((first.disk+roost.KiB-1)/roost.KiB))
	ad.SetInt(roost.AttrWalltime, wholeSeconds(r.walltime))
	ad.SetInt(roost.AttrRequestGpus, int64(first.gpus))
	ad.SetInt(roost.AttrProcesses, int64(first.nodeFileLines()))
	if first.gpuMemory > 0 {
		ad.SetInt(roost.AttrRequestGpuMem, int64((first.gpuMemory-1)/roost.MiB)+1)
	}
	if r.appClass == roost.AppStream {
		ad.SetString(roost.AttrAppClass, r.appClass)
	}
	if text := first.machineConditions(); text != "" {
		e, err := classad.ParseExpr(text)
		if err != nil {
			panic(err) // made of names and quoted texts
		}
		ad.Insert(roost.AttrRequirements, e)
	}
	if r.exclusive {
		ad.SetBool(roost.AttrExclusive, true)
	}
	if len(r.gangParts) == 1 {
		return nil
	}
	if r.placementSet != "" {
		ad.SetString(roost.AttrPlacementSet, r.placementSet)
	}
	ad.SetInt(roost.AttrGangSize, int64(len(r.gangParts)))
	ad.SetBool(roost.AttrMPIGang, true)
	if r.scatter {
		ad.SetBool(roost.AttrScatter, true)
	}
	list := gangColumns(r.gangParts)
	if s.Array != nil { // the chunks of one are those of all
		for i := range list {
			list[i].Values = slices.Repeat(list[i].Values, s.Array.Len())
		}
	}
	return list
}
