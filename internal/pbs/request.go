package pbs

import (
	"slices"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/submit"
)

// request is what the job takes of machines.
type request struct {
	parts     []chunk // of a machine each, the first of which runs the script
	apart     bool    // on a machine each
	alone     bool    // on machines that the job has alone
	together  string  // the attribute in which their machines are the same; "" for none
	processes int     // lines of the node file
	threads   int     // of the first process
	chunks    int
	selection string      // the chunks, as -l select would say it
	place     string      // likewise -l place
	virtual   roost.Bytes // that the processes of the first of them address; 0: no bound
	walltime  time.Duration
	class     string // app_class
}

// settleRequest understands the chunks. Their resources were checked one by one.
func (s *submission) settleRequest() error {
	chunks, at, err := s.chunks()
	if err != nil {
		return err
	}
	if err := s.checkWords(chunks); err != nil {
		return err
	}
	r := &s.request
	if r.parts, err = s.arrange(chunks, at); err != nil {
		return err
	}
	r.parts[0].processes = max(r.parts[0].lines(), 1) // whoever runs has a line
	for i := range r.parts {
		c := &r.parts[i]
		if c.cpus > maxCount || c.gpus > maxCount {
			return illegalResource("ncpus", "the chunks together have more than any machine")
		}
		if c.gpuMemory > 0 && c.gpus == 0 {
			if c.noGpus {
				return illegalResource("gpu_mem", "it is memory of each GPU, and ngpus=0 asks for none")
			}
			c.gpus = 1
		}
		r.processes += c.lines()
	}
	r.virtual = r.parts[0].virtual
	if r.threads = r.parts[0].threads; r.threads == 0 {
		r.threads = max(r.parts[0].cpus, 1)
	}
	return s.settleWhole()
}

// chunks are those of -l select or -l nodes, else the one that the other resources make up.
func (s *submission) chunks() (chunks []chunk, at place, err error) {
	if v, ok := s.wanted["select"]; ok {
		if chunks, err = parseSelect(v); err != nil {
			return nil, at, err
		}
		at.arrangement = "free"
		s.request.selection, s.request.place = v, at.arrangement
		if p, ok := s.wanted["place"]; ok {
			at, err = parsePlace(p)
			s.request.place = p
		}
		if err == nil {
			err = s.lookUp(chunks)
		}
		s.exclude(&at)
		return chunks, at, err
	}
	at.arrangement = "pack"
	chunks = []chunk{newChunk()}
	if v, ok := s.wanted["nodes"]; ok {
		if chunks, err = parseNodes(v); err != nil {
			return nil, at, err
		}
		at.arrangement = "scatter"
		_, at.sharing, _ = strings.Cut(v, "#")
	} else if v, ok := s.wanted["procs"]; ok { // Torque's word for CPUs wherever they are
		chunks[0].cpus, _ = parseCount(v)
		chunks[0].processes, chunks[0].words = chunks[0].cpus, []string{"mpiprocs=" + v}
	}
	for _, name := range sorted(perChunk) {
		if v, ok := s.wanted[name]; ok {
			part(chunks, name, v)
		}
	}
	for _, name := range s.custom() {
		for i := range chunks {
			chunks[i].set(name, s.wanted[name]) // it was looked at
			chunks[i].words = append(chunks[i].words, name+"="+s.wanted[name])
		}
	}
	if err := s.lookUp(chunks); err != nil {
		return nil, at, err
	}
	texts := make([]string, len(chunks))
	for i, c := range chunks {
		texts[i] = c.text()
	}
	s.request.selection, s.request.place = strings.Join(texts, "+"), at.arrangement
	if at.sharing != "" {
		s.request.place += ":" + at.sharing
	}
	s.exclude(&at)
	return chunks, at, nil
}

// exclude does as Torque's -n says, unless it is said otherwise with whom the machines are shared.
func (s *submission) exclude(at *place) {
	if s.whole && at.sharing == "" {
		at.sharing = "excl"
		s.request.place += ":excl"
	}
}

// settleWhole understands the resources of the job as a whole.
func (s *submission) settleWhole() error {
	r := &s.request
	length := func(name string) time.Duration { d, _ := parseLength(s.wanted[name]); return d }
	for _, name := range []string{"pmem", "pvmem"} { // of each process
		size, ok := parseSize(s.wanted[name])
		for i := range r.parts {
			if c := &r.parts[i]; ok && c.bound() == 0 {
				n := roost.Bytes(max(c.lines(), 1))
				if size > 1<<62/n {
					return illegalResource(name, "")
				}
				c.memory = size * n
			}
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
	case bounded && !least:
		return refuse("Cannot have \"max_walltime\" without \"min_walltime\"", exitNoLeast)
	case least && bounded && low > high:
		return refuse("\"min_walltime\" can not be greater than \"max_walltime\"", exitLeastTooMuch)
	case least && given:
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

// setRequest says in the ad what the job takes of the machine of its first chunk, and returns in what the others differ.
func (s *submission) setRequest(ad *classad.Ad) []submit.Column {
	r, first := &s.request, &s.request.parts[0]
	ad.SetInt(roost.AttrRequestCpus, int64(max(first.cpus, 1)))
	ad.SetInt(roost.AttrRequestMemory, int64(first.held()/roost.MiB))
	ad.SetInt(roost.AttrRequestDisk, int64((first.disk+roost.KiB-1)/roost.KiB))
	ad.SetInt(roost.AttrWalltime, seconds(r.walltime))
	ad.SetInt(roost.AttrRequestGpus, int64(first.gpus))
	ad.SetInt(roost.AttrProcesses, int64(first.lines()))
	if first.gpuMemory > 0 {
		ad.SetInt(roost.AttrRequestGpuMem, int64((first.gpuMemory-1)/roost.MiB)+1)
	}
	if r.class == roost.AppStream {
		ad.SetString(roost.AttrAppClass, r.class)
	}
	if text := first.conditions(); text != "" {
		e, err := classad.ParseExpr(text)
		if err != nil {
			panic(err) // it is made of names and quoted texts
		}
		ad.Insert(roost.AttrRequirements, e)
	}
	if r.alone {
		ad.SetBool(roost.AttrExclusive, true)
	}
	if len(r.parts) == 1 {
		return nil
	}
	if r.together != "" {
		ad.SetString(roost.AttrTogether, r.together)
	}
	ad.SetInt(roost.AttrGangSize, int64(len(r.parts)))
	ad.SetBool(roost.AttrGangLed, true)
	if r.apart {
		ad.SetBool(roost.AttrApart, true)
	}
	list := columns(r.parts)
	if s.array != nil { // the chunks of one are those of all
		for i := range list {
			list[i].Values = slices.Repeat(list[i].Values, s.array.Len())
		}
	}
	return list
}
