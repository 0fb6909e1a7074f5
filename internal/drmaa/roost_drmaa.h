/*
 * What the files of libdrmaa share. The library starts the program "roost api" and sends
 * it command lines in JSON; see roost-api(1).
 */
#ifndef ROOST_DRMAA_H
#define ROOST_DRMAA_H

#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <time.h>

#pragma GCC visibility push(default)
#include "drmaa.h"
#pragma GCC visibility pop

/* --- errors (diagnosis.c) --- */

/* Where a function writes a sentence about an error. */
struct diagnosis {
	char *text;
	size_t room;
};

#define DIAGNOSIS ((struct diagnosis){error_diagnosis, error_diag_len})

/* fail writes the sentence, or the standard one for NULL, and returns the number. */
int fail(struct diagnosis d, int number, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* copy_text copies a text into a buffer, cut where the buffer ends. */
void copy_text(char *to, size_t room, const char *from);

/* --- texts (text.c) --- */

/* A text that grows. Once memory is short it takes no more, and failed is true. */
struct text {
	char *data;
	size_t size, room;
	bool failed;
};

void text_add(struct text *t, const char *s);
void text_add_bytes(struct text *t, const char *s, size_t size);
void text_addf(struct text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* text_add_json adds a text as a string of JSON. Bytes that are no UTF-8 become U+FFFD. */
void text_add_json(struct text *t, const char *s);
void text_free(struct text *t);

/* A list of texts that owns them, with a place for a reader. */
struct list {
	char **items;
	size_t count, room, next;
};

bool list_add(struct list *l, const char *s);
void list_free(struct list *l);
int list_next(struct list *l, char *value, size_t room);

struct drmaa_attr_names_s { struct list list; };
struct drmaa_attr_values_s { struct list list; };
struct drmaa_job_ids_s { struct list list; };

/* --- JSON (json.c) --- */

enum json_type { JSON_NULL, JSON_BOOL, JSON_NUMBER, JSON_STRING, JSON_ARRAY, JSON_OBJECT };

struct json {
	enum json_type type;
	double number; /* also of a bool */
	char *string;
	char *name; /* as a member of an object */
	struct json *first, *next;
};

/* json_parse reads one value; NULL for what is none, is too deep, or has no room. */
struct json *json_parse(const char *s, size_t size);
void json_free(struct json *j); /* and those that follow it */
const struct json *json_member(const struct json *j, const char *name);
const char *json_text(const struct json *j, const char *name); /* "" if there is none */
double json_number(const struct json *j, const char *name);    /* 0 if there is none */

/* --- the connection (connection.c) --- */

/* A command line that runs. All members are under library_lock. */
struct call {
	unsigned long id;
	struct text output, error;
	size_t answers; /* parts of output that came */
	int status;     /* the exit status, once done */
	bool done, lost; /* lost: roost api ended before it */
	struct call *next;
};

/* One lock for the session, the calls and the connection. changed is signalled whenever
 * any of them has changed. No lock is held while a request is written or a call is
 * waited for by other means than changed. */
extern pthread_mutex_t library_lock;
extern pthread_cond_t library_changed;

void library_setup(void);

/* connection_configure says which pool is meant; NULL is that of the environment. */
int connection_configure(const char *pool, struct diagnosis d);
void connection_close(void);
void connection_forget(void); /* in a child of fork */

/* call_start begins a command line. The arguments end with NULL. It returns NULL and
 * writes *number if that is not possible. */
struct call *call_start(const char *const *arguments, const char *input, int *number, struct diagnosis d);
void call_end(struct call *c); /* interrupts it if it runs, and frees it */

/* call_document runs a command line to its end, anew if roost api has ended, and returns
 * its document. On failure it returns NULL; *status is the exit status. */
struct json *call_document(const char *const *arguments, const char *input, int *status, struct diagnosis d);

/* status_error is the error number for an exit status of roost. */
int status_error(int status);

/* --- jobs of the session (session.c) --- */

/* stat of drmaa_wait: what happened, the exit status, and the number of the signal. */
#define STAT_EXITED 0x10000
#define STAT_SIGNALED 0x20000
#define STAT_CORE 0x40000
#define STAT_ABORTED 0x80000
#define STAT_CODE(stat) ((stat) & 0xff)
#define STAT_SIGNAL(stat) (((stat) >> 8) & 0xff)

enum job_phase { PHASE_LIVE, PHASE_ENDED, PHASE_REAPED, PHASE_UNKNOWN };

struct job {
	char *id;
	size_t parent_size; /* length of the number in front of "[" or "." */
	bool ours;          /* of this session, and not only waited for in it */
	enum job_phase phase;
	int state;          /* DRMAA_PS of its end */
	int stat;
	struct list usage;
	unsigned interest;  /* how many threads wait for it */
	struct job *chain;  /* in the hash table */
	struct job *ended_before, *ended_after;
};

/* A session. Its members are under library_lock. */
struct session {
	bool active, closing;
	unsigned users;    /* functions that work in it */
	char *name, *pool; /* pool: NULL for that of the environment */
	char *file;        /* the journal: lines "+ID" and "-ID" */
	int journal;       /* its descriptor, or -1 */
	struct job **jobs; /* in the order of submission */
	size_t count, room, live;
	struct job **table;
	size_t slots;
	struct job *first_ended, *last_ended; /* ours, not reaped */
	unsigned any_interest;  /* threads that wait for whatever ends */
	unsigned long generation; /* rises with each job and each interest */
	bool watching;
	pthread_t watcher;
};

extern struct session session;

/* session_enter begins a function that needs a session, and locks; session_leave ends it. */
int session_enter(struct diagnosis d);
void session_leave(void);

struct job *session_find(const char *id);
struct job *session_add(const char *id, bool ours); /* NULL: no memory */
void session_record(char sign, const struct list *ids);
void session_reap(struct job *j);
void session_end_job(struct job *j, int state, int stat, struct list *usage);
bool session_open(const char *contact, int *number, struct diagnosis d);
void session_close(void);

/* --- what a pool tells of jobs (report.c) --- */

/* report_state is the DRMAA_PS of a record of roost jobs --json. With ours, a job that
 * Roost itself holds has failed. */
int report_state(const struct json *record, bool ours);
int report_stat(const struct json *record);
bool report_usage(const struct json *record, struct list *usage);

/* refresh asks the pool about jobs, and ends those of the session that have ended. No lock
 * is held. *state is the DRMAA_PS of the last job; it may be NULL. */
int refresh(const struct list *ids, int *state, struct diagnosis d);

/* --- waiting (watch.c) --- */

/* watch_start begins the thread that follows what is waited for. library_lock is held. */
bool watch_start(void);

/* --- templates (template.c) --- */

/* template_add writes the attributes as members of a JSON object. */
void template_add(struct text *t, const drmaa_job_template_t *jt);

#endif
