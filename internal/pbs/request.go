package pbs

import (
	"slices"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/submit"
)

// request is what the job takes of its machine: all its chunks together.
type request struct {
	cpus      int
	gpus      int
	processes int // lines of the node file
	threads   int // of the first process
	chunks    int
	selection string      // the chunks, as -l select would say it
	place     string      // likewise -l place
	memory    roost.Bytes // 0: as usual
	virtual   roost.Bytes // that its processes address; 0: no bound
	gpuMemory roost.Bytes // of each GPU
	walltime  time.Duration
	class     string // app_class
	require   []string
}

// settleRequest adds the chunks up. Their resources were checked one by one.
func (s *submission) settleRequest() error {
	chunks, err := s.chunks()
	if err != nil {
		return err
	}
	r := &s.request
	none, asked := false, false
	for _, c := range chunks {
		r.chunks += c.count
		r.cpus += c.count * c.cpus
		r.gpus += c.count * c.gpus
		memory := c.memory
		if memory == 0 {
			memory = c.virtual // a bound of what is addressed bounds what is held
		}
		if c.count > 0 && memory > (1<<62-r.memory)/roost.Bytes(c.count) {
			return illegalResource("mem", "the chunks together are more than can be counted")
		}
		if c.virtual > (1<<62-r.virtual)/roost.Bytes(max(c.count, 1)) {
			return illegalResource("vmem", "the chunks together are more than can be counted")
		}
		r.memory += memory * roost.Bytes(c.count)
		r.virtual += c.virtual * roost.Bytes(c.count)
		r.gpuMemory = max(r.gpuMemory, c.gpuMemory)
		none, asked = none || c.noGpus, asked || c.gpuMemory > 0
		if c.processes < 0 {
			c.processes = min(c.cpus, 1)
		}
		r.processes += c.count * c.processes
		r.require = append(r.require, c.require...)
		for _, h := range c.hosts {
			r.require = append(r.require, isMachine(h))
		}
	}
	r.processes = max(r.processes, 1)
	if r.cpus > maxCount || r.gpus > maxCount {
		return illegalResource("ncpus", "the chunks together have more than any machine")
	}
	first := chunks[0]
	if r.threads = first.threads; r.threads == 0 {
		r.threads = max(first.cpus, 1)
	}
	if asked && r.gpus == 0 {
		if none {
			return illegalResource("gpu_mem", "it is memory of each GPU, and ngpus=0 asks for none")
		}
		r.gpus = 1
	}
	return s.settleWhole()
}

// chunks are those of -l select or -l nodes, else the one that the other resources make up.
func (s *submission) chunks() ([]chunk, error) {
	if v, ok := s.wanted["select"]; ok {
		chunks, err := parseSelect(v)
		if err != nil {
			return nil, err
		}
		arrangement := "free"
		s.request.selection, s.request.place = v, arrangement
		if p, ok := s.wanted["place"]; ok {
			if arrangement, err = parsePlace(p); err != nil {
				return nil, err
			}
			s.request.place = p
		}
		return chunks, onOne(chunks, arrangement)
	}
	s.request.place = "pack"
	chunks := []chunk{newChunk()}
	if v, ok := s.wanted["nodes"]; ok {
		var err error
		if chunks, err = parseNodes(v); err != nil {
			return nil, err
		}
		if err := onOne(chunks, "scatter"); err != nil {
			return nil, err
		}
		s.request.place = "scatter"
	} else if v, ok := s.wanted["procs"]; ok { // Torque's word for CPUs wherever they are
		chunks[0].cpus, _ = parseCount(v)
		chunks[0].processes, chunks[0].words = chunks[0].cpus, []string{"mpiprocs=" + v}
	}
	for _, name := range sorted(perChunk) {
		if v, ok := s.wanted[name]; ok {
			chunks[0].known(name, v)
		}
	}
	texts := make([]string, len(chunks))
	for i, c := range chunks {
		texts[i] = c.text()
	}
	s.request.selection = strings.Join(texts, "+")
	return chunks, nil
}

// settleWhole understands the resources of the job as a whole.
func (s *submission) settleWhole() error {
	r := &s.request
	length := func(name string) time.Duration { d, _ := parseLength(s.wanted[name]); return d }
	for _, name := range []string{"pmem", "pvmem"} { // of each process
		if size, ok := parseSize(s.wanted[name]); ok && r.memory == 0 {
			n := roost.Bytes(max(r.processes, 1))
			if size > 1<<62/n {
				return illegalResource(name, "")
			}
			r.memory = size * n
		}
	}
	low, high := length("min_walltime"), length("max_walltime")
	if r.walltime = length("walltime"); r.walltime == 0 {
		r.walltime = high
	}
	_, bounded := s.wanted["max_walltime"]
	_, least := s.wanted["min_walltime"]
	switch w, given := s.wanted["walltime"]; {
	case given && r.walltime == 0:
		return illegalResource("walltime", w+" is no time to do anything in")
	case least && given, bounded && !least, least && bounded && low > high:
		return illegalResource("min_walltime", "write min_walltime, with a max_walltime that is not less, instead of walltime")
	}
	for _, name := range []string{"cput", "pcput"} {
		if v, given := s.wanted[name]; given && length(name) == 0 {
			return illegalResource(name, v+" is no time to do anything in")
		}
	}
	if r.class = s.wanted["app_class"]; r.class != "" && r.class != roost.AppBatch && r.class != roost.AppStream {
		return illegalResource("app_class", "app_class is batch or stream")
	}
	return nil
}

// setRequest says in the ad what the job takes.
func (s *submission) setRequest(ad *classad.Ad) {
	r := &s.request
	memory := r.memory
	if memory == 0 {
		memory = submit.StandardDefaults().Memory
	}
	ad.SetInt(roost.AttrRequestCpus, int64(max(r.cpus, 1)))
	ad.SetInt(roost.AttrRequestMemory, int64((memory-1)/roost.MiB)+1)
	ad.SetInt(roost.AttrRequestDisk, 0)
	ad.SetInt(roost.AttrWalltime, seconds(r.walltime))
	ad.SetInt(roost.AttrRequestGpus, int64(r.gpus))
	if r.gpuMemory > 0 {
		ad.SetInt(roost.AttrRequestGpuMem, int64((r.gpuMemory-1)/roost.MiB)+1)
	}
	if r.class == roost.AppStream {
		ad.SetString(roost.AttrAppClass, r.class)
	}
	require := slices.Compact(slices.Sorted(slices.Values(r.require)))
	if len(require) == 0 {
		return
	}
	e, err := classad.ParseExpr("(" + strings.Join(require, ") && (") + ")")
	if err != nil {
		panic(err) // it is made of names and quoted texts
	}
	ad.Insert(roost.AttrRequirements, e)
}
