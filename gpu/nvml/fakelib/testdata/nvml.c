/*
 * A stand-in for NVIDIA's management library, for tests on machines without cards: it serves the machine that a text file describes, enough of
 * it for package gpu/nvml. The file is read anew at each call, so that a test changes the machine by writing another one in its place.
 *
 * It is the one that ROOST_FAKE_NVML names, or else the file "machine" beside the library. Each line is a word and fields, the last of which
 * may hold spaces; see text in fakelib.go.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { OK = 0, BAD = 2, UNSUPPORTED = 3, ABSENT = 6, SMALL = 7, LATE = 10, LOST = 15 };

struct device { char uuid[96]; };
typedef struct device *handle;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct device devices[64];
static unsigned told; /* events that were delivered */

/* load returns the file's text, which the caller frees. */
static char *load(void) {
	char path[4096];
	const char *given = getenv("ROOST_FAKE_NVML");
	if (given && *given) {
		snprintf(path, sizeof path, "%s", given);
	} else {
		Dl_info me;
		if (!dladdr((void *)load, &me)) return strdup("");
		snprintf(path, sizeof path, "%s", me.dli_fname);
		char *slash = strrchr(path, '/');
		snprintf(slash ? slash + 1 : path, sizeof path - (slash ? slash + 1 - path : 0), "machine");
	}
	FILE *f = fopen(path, "r");
	if (!f) return strdup("");
	char *text = calloc(1, 1 << 18);
	size_t n = fread(text, 1, (1 << 18) - 1, f);
	text[n] = 0;
	fclose(f);
	return text;
}

/* value copies a field of a line; "model" goes to the end of the line. */
static int value(const char *line, const char *key, char *out, size_t size) {
	char name[64];
	snprintf(name, sizeof name, " %s=", key);
	const char *end = strchrnul(line, '\n');
	const char *at = strstr(line, name);
	if (!at || at > end) return 0;
	at += strlen(name);
	size_t n = strcmp(key, "model") == 0 ? (size_t)(end - at) : strcspn(at, " \n");
	if (n >= size) n = size - 1;
	memcpy(out, at, n);
	out[n] = 0;
	return 1;
}

static long long number(const char *line, const char *key, long long otherwise) {
	char text[64];
	return value(line, key, text, sizeof text) ? strtoll(text, NULL, 10) : otherwise;
}

/* line_of returns the line of that word after skip others. */
static const char *line_of(const char *text, const char *word, unsigned skip) {
	size_t n = strlen(word);
	for (const char *l = text; *l; l = strchrnul(l, '\n') + (*strchrnul(l, '\n') == '\n')) {
		if (strncmp(l, word, n) == 0 && l[n] == ' ' && skip-- == 0) return l;
	}
	return NULL;
}

/* find returns the line in which that field has that value. */
static const char *find(const char *text, const char *word, const char *key, const char *want) {
	char got[96];
	const char *l;
	for (unsigned i = 0; (l = line_of(text, word, i)); i++)
		if (value(l, key, got, sizeof got) && strcmp(got, want) == 0) return l;
	return NULL;
}

static handle device(const char *uuid) {
	for (unsigned i = 0; i < 64; i++) {
		if (!devices[i].uuid[0]) snprintf(devices[i].uuid, sizeof devices[i].uuid, "%s", uuid);
		if (strcmp(devices[i].uuid, uuid) == 0) return &devices[i];
	}
	return NULL;
}

/* own is the line of a device: a card's or an instance's. */
static const char *own(const char *text, handle d, int *card) {
	const char *l = find(text, "card", "uuid", d->uuid);
	if (card) *card = l != NULL;
	return l ? l : find(text, "instance", "uuid", d->uuid);
}

/* ASK runs what it is given with the device's line as l; return codes go through ret. */
#define ASK(...) \
	pthread_mutex_lock(&lock); \
	char *text = load(); int card = 0, ret = OK; \
	const char *l = own(text, d, &card); \
	if (!l) ret = BAD; else if (number(l, "lost", 0)) ret = LOST; else { __VA_ARGS__ } \
	(void)card; free(text); pthread_mutex_unlock(&lock); return ret;

int nvmlInit_v2(void) { return OK; }
int nvmlShutdown(void) { return OK; }
const char *nvmlErrorString(int code) { return code == LOST ? "GPU is lost" : code == UNSUPPORTED ? "Not Supported" : "an error of the fake library"; }

static int system_text(const char *key, char *out, unsigned size) {
	pthread_mutex_lock(&lock);
	char *text = load();
	const char *l = line_of(text, "system", 0);
	int ret = l && value(l, key, out, size) ? OK : UNSUPPORTED;
	free(text);
	pthread_mutex_unlock(&lock);
	return ret;
}

int nvmlSystemGetDriverVersion(char *out, unsigned size) { return system_text("driver", out, size); }

int nvmlSystemGetCudaDriverVersion(int *version) {
	char text[32];
	int ret = system_text("cuda", text, sizeof text);
	if (ret == OK) *version = atoi(text);
	return ret;
}

int nvmlDeviceGetCount_v2(unsigned *count) {
	pthread_mutex_lock(&lock);
	char *text = load();
	for (*count = 0; line_of(text, "card", *count); ++*count) {}
	free(text);
	pthread_mutex_unlock(&lock);
	return OK;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, handle *out) {
	pthread_mutex_lock(&lock);
	char *text = load(), uuid[96];
	const char *l = line_of(text, "card", index);
	int ret = OK;
	if (!l || !value(l, "uuid", uuid, sizeof uuid)) ret = BAD;
	else if (number(l, "lost", 0)) ret = LOST;
	else *out = device(uuid);
	free(text);
	pthread_mutex_unlock(&lock);
	return ret;
}

int nvmlDeviceGetUUID(handle d, char *out, unsigned size) { ASK(value(l, "uuid", out, size);) }
int nvmlDeviceGetName(handle d, char *out, unsigned size) { ASK(if (!value(l, "model", out, size)) ret = UNSUPPORTED;) }

#define NUMBER(name, type, key, cards_only) \
	int name(handle d, type *out) { ASK(long long v = number(l, key, -1); if (v < 0 || (cards_only && !card)) ret = UNSUPPORTED; else *out = v;) }
NUMBER(nvmlDeviceGetMinorNumber, unsigned, "minor", 1)
NUMBER(nvmlDeviceGetPowerUsage, unsigned, "milliwatts", 1)
NUMBER(nvmlDeviceGetGpuInstanceId, unsigned, "gi", 0)
NUMBER(nvmlDeviceGetComputeInstanceId, unsigned, "ci", 0)
NUMBER(nvmlDeviceGetRetiredPagesPendingStatus, unsigned, "retiring", 1)
NUMBER(nvmlDeviceGetMaxMigDeviceCount, unsigned, "most", 1)

int nvmlDeviceGetTemperature(handle d, int sensor, unsigned *out) {
	(void)sensor;
	ASK(long long v = number(l, "celsius", -1); if (v < 0 || !card) ret = UNSUPPORTED; else *out = v;)
}

int nvmlDeviceGetTotalEccErrors(handle d, int kind, int counter, unsigned long long *out) {
	(void)kind, (void)counter;
	ASK(long long v = number(l, "ecc", -1); if (v < 0 || !card) ret = UNSUPPORTED; else *out = v;)
}

int nvmlDeviceGetRemappedRows(handle d, unsigned *corrected, unsigned *uncorrected, unsigned *pending, unsigned *failed) {
	ASK(long long v = number(l, "remap", -1); /* 0 none, 1 pending, 2 failed */
	    if (v < 0 || !card) ret = UNSUPPORTED;
	    else *corrected = 0, *uncorrected = v > 0, *pending = v == 1, *failed = v == 2;)
}

int nvmlDeviceGetMigMode(handle d, unsigned *current, unsigned *pending) {
	ASK(long long v = number(l, "most", -1); if (v < 0 || !card) ret = UNSUPPORTED; else *current = *pending = v > 0;)
}

int nvmlDeviceGetMigDeviceHandleByIndex(handle d, unsigned index, handle *out) {
	ASK(char parent[96]; char uuid[96]; const char *i; ret = ABSENT; (void)l;
	    for (unsigned n = 0; (i = line_of(text, "instance", n)); n++)
		    if (value(i, "card", parent, sizeof parent) && strcmp(parent, d->uuid) == 0 && index-- == 0 && value(i, "uuid", uuid, sizeof uuid)) {
			    *out = device(uuid);
			    ret = OK;
			    break;
		    })
}

struct memory { unsigned long long total, free, used; };
int nvmlDeviceGetMemoryInfo(handle d, struct memory *out) {
	ASK(out->total = number(l, "memory", 0); out->used = number(l, "used", 0); out->free = out->total - out->used;)
}

int nvmlDeviceGetCudaComputeCapability(handle d, int *major, int *minor) {
	ASK(char c[32]; if (!value(l, "capability", c, sizeof c) || sscanf(c, "%d.%d", major, minor) != 2) ret = UNSUPPORTED;)
}

struct pci { char legacy[16]; unsigned domain, bus, device, id, subsystem; char bus_id[32]; };
int nvmlDeviceGetPciInfo_v3(handle d, struct pci *out) {
	ASK(memset(out, 0, sizeof *out); if (!value(l, "pci", out->bus_id, sizeof out->bus_id)) ret = UNSUPPORTED;)
}

int nvmlDeviceGetCpuAffinity(handle d, unsigned words, unsigned long *set) {
	ASK(long long first = number(l, "core", -1); long long n = number(l, "cores", 0); memset(set, 0, words * sizeof *set);
	    if (first < 0) ret = UNSUPPORTED;
	    else for (long long c = first; c < first + n && c < (long long)words * 64; c++) set[c / 64] |= 1UL << c % 64;)
}

int nvmlDeviceGetMemoryAffinity(handle d, unsigned words, unsigned long *set, int scope) {
	(void)scope;
	ASK(long long n = number(l, "node", -1); memset(set, 0, words * sizeof *set);
	    if (n < 0 || n >= (long long)words * 64) ret = UNSUPPORTED; else set[n / 64] |= 1UL << n % 64;)
}

int nvmlDeviceGetTopologyCommonAncestor(handle d, handle other, int *level) {
	ASK(char a[96]; char b[96]; const char *k; ret = UNSUPPORTED; (void)l;
	    for (unsigned i = 0; (k = line_of(text, "link", i)); i++) {
		    value(k, "from", a, sizeof a), value(k, "to", b, sizeof b);
		    if ((!strcmp(a, d->uuid) && !strcmp(b, other->uuid)) || (!strcmp(b, d->uuid) && !strcmp(a, other->uuid)))
			    *level = number(k, "level", 50), ret = OK;
	    })
}

struct utilization { unsigned gpu, memory; };
int nvmlDeviceGetUtilizationRates(handle d, struct utilization *out) {
	ASK(long long v = number(l, "busy", -1); if (v < 0 || !card) ret = UNSUPPORTED; else out->gpu = v, out->memory = 0;)
}

struct process { unsigned pid; unsigned long long memory; unsigned gi, ci; };
int nvmlDeviceGetComputeRunningProcesses_v3(handle d, unsigned *count, struct process *out) {
	ASK(char on[96]; const char *p; unsigned n = 0; (void)l;
	    for (unsigned i = 0; (p = line_of(text, "process", i)); i++) {
		    if (!value(p, "card", on, sizeof on) || strcmp(on, d->uuid) != 0) continue;
		    if (n < *count) out[n] = (struct process){number(p, "pid", 0), number(p, "memory", -1), ~0u, ~0u};
		    n++;
	    }
	    ret = n > *count ? SMALL : OK; *count = n;)
}

struct sample { unsigned pid; unsigned long long at; unsigned sm, memory, encoder, decoder; };
int nvmlDeviceGetProcessUtilization(handle d, struct sample *out, unsigned *count, unsigned long long since) {
	(void)since;
	ASK(char on[96]; const char *p; unsigned n = 0; struct timespec now; (void)l;
	    clock_gettime(CLOCK_REALTIME, &now);
	    for (unsigned i = 0; (p = line_of(text, "process", i)); i++) {
		    if (!value(p, "card", on, sizeof on) || strcmp(on, d->uuid) != 0) continue;
		    if (out && n < *count) out[n] = (struct sample){number(p, "pid", 0), now.tv_sec * 1000000ULL + now.tv_nsec / 1000, number(p, "busy", 0), 0, 0, 0};
		    n++;
	    }
	    ret = n == 0 ? ABSENT : !out || n > *count ? SMALL : OK; *count = n;)
}

/* Events: the lines "xid", of which each is delivered once, in their order. */
struct event { handle device; unsigned long long type, data; unsigned gi, ci; };
static int set;
int nvmlEventSetCreate(void **out) { *out = &set; return OK; }
int nvmlEventSetFree(void *s) { (void)s; return OK; }
int nvmlDeviceGetSupportedEventTypes(handle d, unsigned long long *types) { ASK((void)l; *types = 8;) }
int nvmlDeviceRegisterEvents(handle d, unsigned long long types, void *s) { (void)types, (void)s; ASK((void)l;) }

int nvmlEventSetWait_v2(void *s, struct event *out, unsigned limit) {
	(void)s;
	for (unsigned waited = 0;; waited += 20) {
		char uuid[96];
		int found = 0;
		pthread_mutex_lock(&lock);
		char *text = load();
		const char *l = line_of(text, "xid", told);
		if (l && value(l, "card", uuid, sizeof uuid)) {
			told++, found = 1;
			*out = (struct event){device(uuid), 8, number(l, "code", 0), number(l, "gi", 0xFFFFFFFF), 0xFFFFFFFF};
		}
		free(text);
		pthread_mutex_unlock(&lock);
		if (found) return OK;
		if (waited >= limit) return LATE;
		nanosleep(&(struct timespec){0, 20000000}, NULL);
	}
}
