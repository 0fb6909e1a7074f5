INSERT INTO rate (id, grp, start, document) VALUES (1, '', 0, '');
INSERT INTO budget (id, project, grp, owner, first, last, amount, hard, person, made)
 VALUES (1, 'p1', '', '', 24321, 24323, 5000000, 1, 'root', 1790000000000);
INSERT INTO adjustment (id, request, month, project, grp, owner, amount, reason, person, made)
 VALUES (1, 'request-1', 24321, 'p1', '', 'ann', -250000, 'a broken node', 'root', 1790000000000);
