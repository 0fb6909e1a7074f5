package submit

// The readers below read one kind of settings of a job each. They share the fields of the
// builder: a reader is one pointer, made where it is called.

// transferReader reads which files travel to the job and back.
type transferReader struct{ *jobBuilder }

// programReader reads the program, its arguments, its directory and its environment.
type programReader struct{ *jobBuilder }

// resourceReader reads what a task asks for: cores, memory, disk, GPUs and bounds.
type resourceReader struct{ *jobBuilder }

// constraintReader reads which machines may run the job, and which are preferred.
type constraintReader struct{ *jobBuilder }

// taskSetReader reads how many tasks the job has, and how they differ.
type taskSetReader struct{ *jobBuilder }

func (b *jobBuilder) transferReader() transferReader { return transferReader{b} }

func (b *jobBuilder) programReader() programReader { return programReader{b} }

func (b *jobBuilder) resourceReader() resourceReader { return resourceReader{b} }

func (b *jobBuilder) constraintReader() constraintReader { return constraintReader{b} }

func (b *jobBuilder) taskReader() taskSetReader { return taskSetReader{b} }
