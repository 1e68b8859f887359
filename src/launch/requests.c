/* SPDX-License-Identifier: Apache-2.0 */
#include "launch/requests.h"

#include <stdlib.h>
#include <string.h>

struct asking {
    struct coordinator *c;
    int n;
    int64_t now;
    struct request_texts *t;
    struct host_message *answer;
};

static tri_status hosts(struct asking *a, char *argument) {
    (void)argument;
    for (int i = 0; i < a->n; i++) {
        struct coordinator_view v;
        coordinator_look(a->c, i, &v);
        a->t->row[i] = a->t->text[i];
        base_format(a->t->text[i], sizeof a->t->text[i], "%s\t%s\t%d\t%llu\t%u", v.name, v.state,
                    v.workers, (unsigned long long)v.step, v.epoch);
    }
    a->answer->rows = (struct host_texts){a->n, a->t->row};
    return TRI_OK;
}

static tri_status evict(struct asking *a, char *argument) {
    return coordinator_evict(a->c, argument, a->now);
}

static tri_status scale(struct asking *a, char *argument) {
    char *number = strrchr(argument, '='), *end = number;
    const long n = number ? strtol(number + 1, &end, 10) : 0;
    if (!number || end == number + 1 || *end || n < 0 || n > CREW_MOST_WORKERS)
        return base_fail(TRI_USAGE, "scale %s: HOST=N was expected", argument);
    *number = 0;
    return coordinator_scale(a->c, argument, (int)n);
}

void request_answer(struct coordinator *c, int n, const char *request, int64_t now,
                    struct request_texts *t, struct host_message *answer) {
    static const struct {
        const char *name;
        tri_status (*answer)(struct asking *a, char *argument);
    } words[] = {{"hosts", hosts}, {"evict", evict}, {"scale", scale}};
    struct asking a = {c, n, now, t, answer};
    char copy[CREW_REQUEST], *argument = copy;
    base_format(copy, sizeof copy, "%s", request);
    const char *word = strsep(&argument, " ");
    tri_status status = base_fail(TRI_USAGE, "the coordinator knows no request %s", word);
    for (size_t i = 0; i < COUNT(words); i++)
        if (!strcmp(word, words[i].name)) status = words[i].answer(&a, argument ? argument : copy);
    answer->code = (int)status;
    if (!status) return;
    base_format(t->text[0], sizeof t->text[0], "%s", tri_message());
    t->row[0] = t->text[0];
    answer->rows = (struct host_texts){1, t->row};
}
