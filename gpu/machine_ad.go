package gpu

import (
	"fmt"
	"math"
	"slices"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
)

// The attributes of the ads nested in AttrUnits, beside roost's own names Name, Cpus,
// TotalCpus, Memory and TotalMemory.
const (
	attrFreeMemory = "Free"
	attrNUMA       = "NUMA"
	attrTasks      = "Tasks"
	attrHealthy    = "Healthy"
	attrWhy        = "Why"
	attrUUID       = "UUID"
	attrModel      = "Model"
	attrCapability = "Capability"
	attrMIG        = "MIG"
	attrCores      = "Cores"
	attrLinks      = "Links"
)

// Describe writes the units, and what is free of them, into a machine's ad. ReadAd is its
// inverse. Amounts of memory are in MiB. Numbers of cores are left out, because only the
// startd uses them.
func (f *FreeResources) Describe(ad *classad.Ad) {
	units := make([]classad.Value, 0, len(f.units))
	at := 0
	for i := range f.units {
		u := &f.units[i]
		a := classad.New()
		a.SetString(roost.AttrName, u.Name)
		setCPU(a, roost.AttrCpus, u.cpu[BatchClass])
		setCPU(a, roost.AttrStreamCpus, u.cpu[StreamClass])
		setCPU(a, roost.AttrTotalCpus, u.CPU)
		setMiB(a, roost.AttrMemory, u.memory)
		setMiB(a, roost.AttrTotalMemory, u.Memory)
		f.describeReclaimable(i, a)
		if u.NUMA >= 0 {
			a.SetInt(attrNUMA, int64(u.NUMA))
		}
		if len(u.Devices) > 0 {
			devices := make([]classad.Value, 0, len(u.Devices))
			for range u.Devices {
				devices = append(devices, classad.AdOf(f.deviceAd(at)))
				at++
			}
			a.SetValue(roost.AttrGpus, classad.ListValue(devices...))
		}
		q := u.queue
		a.SetInt(roost.AttrRunLimit, int64(q.RunLimit))
		a.SetInt(roost.AttrRunning, int64(q.Running))
		a.SetInt(roost.AttrQueueLength, int64(q.Length))
		a.SetInt(roost.AttrQueueRoom, int64(q.FreePlaces))
		a.SetReal(roost.AttrPredictedWait, q.WaitSeconds)
		units = append(units, classad.AdOf(a))
	}
	ad.SetValue(roost.AttrUnits, classad.ListValue(units...))
	f.describeReclaimed(ad)
	f.describeDevices(ad)
}

func (f *FreeResources) deviceAd(i int) *classad.Ad {
	d := &f.devices[i]
	a := classad.New()
	a.SetString(attrUUID, d.UUID)
	a.SetString(attrModel, d.Model)
	setMiB(a, roost.AttrMemory, d.Memory)
	setMiB(a, attrFreeMemory, d.Free)
	a.SetInt(attrTasks, int64(d.Tasks))
	a.SetInt(attrNUMA, int64(d.NUMANode))
	a.SetString(attrCapability, d.Capability)
	a.SetBool(attrHealthy, d.Health.OK)
	if !d.Health.OK {
		a.SetString(attrWhy, d.Health.Reason)
	}
	if d.MIG != "" {
		a.SetString(attrMIG, d.MIG)
	}
	if f.linkRows != nil {
		n := len(f.devices)
		links := make([]classad.Value, n)
		for j := range links {
			links[j] = classad.IntValue(int64(f.linkRows[i*n+j]))
		}
		a.SetValue(attrLinks, classad.ListValue(links...))
	}
	return a
}

// describeDevices writes what requirements look at: the largest card, the largest free
// share, and the models.
func (f *FreeResources) describeDevices(ad *classad.Ad) {
	if len(f.devices) == 0 {
		return
	}
	var most, free roost.Bytes
	var models []string
	for i := range f.devices {
		if d := &f.devices[i]; d.Health.OK {
			most, free = max(most, d.Memory), max(free, d.Free)
			models = append(models, d.Model)
		}
	}
	slices.Sort(models)
	ad.SetInt(roost.AttrGpuMemoryMax, int64(most/roost.MiB))
	ad.SetInt(roost.AttrGpuMemoryFree, int64(free/roost.MiB))
	ad.SetStrings(roost.AttrGpuModels, slices.Compact(models))
}

func setCPU(a *classad.Ad, name string, c roost.MilliCPU) {
	if c%1000 == 0 {
		a.SetInt(name, int64(c/1000))
	} else {
		a.SetReal(name, c.Cores())
	}
}

// setMiB sets an attribute in MiB. It is exact below 8 PiB: a part of a MiB is a binary
// fraction.
func setMiB(a *classad.Ad, name string, b roost.Bytes) {
	if b%roost.MiB == 0 {
		a.SetInt(name, int64(b/roost.MiB))
	} else {
		a.SetReal(name, float64(b)/float64(roost.MiB))
	}
}

// ReadAd returns what is free of a machine from its ad. A machine whose ad has no units,
// such as one of HTCondor, becomes one unit with whole GPUs. The error, of kind
// roost.Invalid, says what is wrong in the ad.
func ReadAd(ad *classad.Ad) (*FreeResources, error) {
	size := roost.Bytes(amountAttr(ad, roost.AttrTotalDisk, float64(roost.KiB)))
	disk := roost.Bytes(amountAttr(ad, roost.AttrDisk, float64(roost.KiB)))
	if _, ok := ad.Lookup(roost.AttrUnits); !ok {
		f := machineOfSums(ad, disk, max(size, disk))
		readIORates(f, ad)
		return f, nil
	}
	list, ok := ad.Eval(roost.AttrUnits, nil).Elements(nil)
	if !ok || len(list) == 0 || len(list) > maxUnits {
		return nil, fmt.Errorf("%s: %w: it is no list of resource units", roost.AttrUnits, roost.Invalid)
	}
	f := &FreeResources{disk: disk, diskSize: max(size, disk)}
	readIORates(f, ad)
	r := adReader{free: f}
	for i, v := range list {
		a, ok := v.Ad()
		if !ok {
			return nil, fmt.Errorf("%s: %w: the unit at place %d is no ad", roost.AttrUnits, roost.Invalid, i)
		}
		if err := r.readUnit(a); err != nil {
			return nil, fmt.Errorf("%s: place %d: %w", roost.AttrUnits, i, err)
		}
	}
	return f, r.readLinks()
}

// readIORates reads the rates of I/O of a machine's ad.
func readIORates(f *FreeResources, ad *classad.Ad) {
	f.io = IORatesOf(ad, roost.AttrDiskIO, roost.AttrNetwork)
	f.ioTotal = IORatesOf(ad, roost.AttrTotalDiskIO, roost.AttrTotalNetwork).Max(f.io)
}

// IORatesOf reads two rates of an ad. An absent one is 0.
func IORatesOf(ad *classad.Ad, disk, network string) roost.IORates {
	rate := func(name string) roost.ByteRate {
		return min(roost.ByteRate(amountAttr(ad, name, float64(roost.KiB))), roost.MaxByteRate)
	}
	return roost.IORates{Disk: rate(disk), Network: rate(network)}
}

// DescribeIORates writes the rates into an ad in KiB per second, those that are not zero
// in shown.
func DescribeIORates(ad *classad.Ad, r, shown roost.IORates, disk, network string) {
	if shown.Disk > 0 {
		ad.SetInt(disk, int64(r.Disk)/int64(roost.KiB))
	}
	if shown.Network > 0 {
		ad.SetInt(network, int64(r.Network)/int64(roost.KiB))
	}
}

// maxUnits bounds the units read from an ad.
const maxUnits = 1024

// adReader builds a machine from its ad.
type adReader struct {
	free     *FreeResources
	linkRows [][]classad.Value // of each device, as in the ad
}

func (r *adReader) readUnit(a *classad.Ad) error {
	u := unitState{ResourceUnit: ResourceUnit{NUMA: wholeNumberAttr(a, attrNUMA, -1)}}
	u.Name, _ = a.Str(roost.AttrName)
	u.CPU, u.Memory = cpuAttr(a, roost.AttrTotalCpus), mibAttr(a, roost.AttrTotalMemory)
	u.cpu = [2]roost.MilliCPU{cpuAttr(a, roost.AttrCpus), cpuAttr(a, roost.AttrStreamCpus)}
	u.memory = mibAttr(a, roost.AttrMemory)
	u.queue = UnitQueue{
		RunLimit: wholeNumberAttr(a, roost.AttrRunLimit, 0), Running: wholeNumberAttr(a, roost.AttrRunning, 0),
		Length:     wholeNumberAttr(a, roost.AttrQueueLength, 0),
		FreePlaces: wholeNumberAttr(a, roost.AttrQueueRoom, 0),
	}
	u.queue.WaitSeconds, _ = a.Real(roost.AttrPredictedWait)
	if u.cpu[BatchClass] > u.CPU || u.cpu[StreamClass] > u.CPU || u.memory > u.Memory {
		return fmt.Errorf("%w: more is free than there is", roost.Invalid)
	}
	if err := r.readReclaimable(&u, a); err != nil {
		return err
	}
	if v := a.Eval(roost.AttrGpus, nil); !v.IsUndefined() {
		list, ok := v.Elements(nil)
		if !ok || len(list)+len(r.free.devices) > maxUnits {
			return fmt.Errorf("%s: %w: it is no list of devices", roost.AttrGpus, roost.Invalid)
		}
		for _, v := range list {
			g, ok := v.Ad()
			if !ok {
				return fmt.Errorf("%s: %w: a device is no ad", roost.AttrGpus, roost.Invalid)
			}
			d := r.readDevice(g)
			u.Devices = append(u.Devices, d.Device)
			r.free.devices = append(r.free.devices, d)
		}
	}
	r.free.cpuOnly = r.free.cpuOnly || len(u.Devices) == 0
	r.free.units = append(r.free.units, u)
	return nil
}

func (r *adReader) readDevice(a *classad.Ad) DeviceState {
	d := DeviceState{Device: Device{Index: len(r.free.devices), Minor: -1, NUMANode: wholeNumberAttr(a, attrNUMA, -1),
		Memory: mibAttr(a, roost.AttrMemory)}, Unit: len(r.free.units)}
	d.UUID, _ = a.Str(attrUUID)
	d.Model, _ = a.Str(attrModel)
	d.Capability, _ = a.Str(attrCapability)
	d.MIG, _ = a.Str(attrMIG)
	d.Health.OK, _ = a.Bool(attrHealthy)
	d.Health.Reason, _ = a.Str(attrWhy)
	d.Free, d.Tasks = min(mibAttr(a, attrFreeMemory), d.Memory), wholeNumberAttr(a, attrTasks, 0)
	links, _ := a.Eval(attrLinks, nil).Elements(nil)
	r.linkRows = append(r.linkRows, links)
	return d
}

// readLinks reads how close the devices are to each other, if all of them have links.
func (r *adReader) readLinks() error {
	n := len(r.free.devices)
	near := make([]int, 0, n*n)
	for _, row := range r.linkRows {
		if len(row) != n {
			return nil
		}
		for _, v := range row {
			k, _ := v.Int()
			near = append(near, int(k))
		}
	}
	if n > 0 {
		r.free.linkRows = near
	}
	return nil
}

// machineOfSums returns a machine whose ad has only sums.
func machineOfSums(ad *classad.Ad, disk, size roost.Bytes) *FreeResources {
	u := ResourceUnit{Name: "shared", NUMA: -1}
	cpus, memory := cpuAttr(ad, roost.AttrCpus), mibAttr(ad, roost.AttrMemory)/roost.MiB*roost.MiB
	u.CPU, u.Memory = max(cpuAttr(ad, roost.AttrTotalCpus), cpus), max(mibAttr(ad, roost.AttrTotalMemory), memory)
	gpus := wholeNumberAttr(ad, roost.AttrGpus, 0)
	units := []ResourceUnit{u}
	for i := range min(max(wholeNumberAttr(ad, roost.AttrTotalGpus, 0), gpus), maxUnits) {
		units = append(units, ResourceUnit{Name: fmt.Sprintf("gpu%d", i), NUMA: -1,
			Devices: []Device{{Index: i, NUMANode: -1, Minor: -1, Health: HealthyDevice()}}})
	}
	f := NewFree(units, size)
	f.disk = disk
	f.units[0].cpu, f.units[0].memory = [2]roost.MilliCPU{cpus, u.CPU}, memory
	f.units[0].reclaimable = reclaimableResources{f.units[0].cpu, memory}
	for i := range f.devices {
		if i >= gpus {
			f.devices[i].Tasks = 1
		}
	}
	return f
}

func cpuAttr(a *classad.Ad, name string) roost.MilliCPU {
	return roost.MilliCPU(amountAttr(a, name, 1000))
}
func mibAttr(a *classad.Ad, name string) roost.Bytes {
	return roost.Bytes(amountAttr(a, name, float64(roost.MiB)))
}

func wholeNumberAttr(a *classad.Ad, name string, otherwise int) int {
	if n, ok := a.Int(name); ok && n >= math.MinInt32 && n <= math.MaxInt32 {
		return int(n)
	}
	return otherwise
}

// amountAttr returns an attribute in units, rounded down except for the errors of binary
// fractions.
func amountAttr(ad *classad.Ad, name string, unit float64) int64 {
	n, ok := ad.Real(name)
	if v := n * unit; ok && v > 0 && v < math.MaxInt64/1024 {
		return int64(v + 1e-6)
	}
	return 0
}
