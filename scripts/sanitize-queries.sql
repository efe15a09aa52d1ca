-- Queries that between them launch every family of generated kernels, a line each, over TPC-H at scale factor 0.01:
-- scripts/sanitize-queries.sh runs each under compute-sanitizer's tools. Keys times a large odd number are scattered.
SELECT l_linenumber, sum(l_quantity), min(l_tax), max(l_tax), avg(l_discount), count(*) FROM lineitem GROUP BY l_linenumber
SELECT l_linenumber * 1000000000039 AS k, sum(l_quantity), min(l_tax), max(l_tax), avg(l_discount), count(*) FROM lineitem GROUP BY k
SELECT l_suppkey * 1000000000039 AS k, sum(l_quantity), stddev(l_tax), count(*) FROM lineitem GROUP BY k
SELECT l_orderkey, sum(l_quantity), min(l_tax), max(l_tax), avg(l_discount), count(*) FROM lineitem GROUP BY l_orderkey
SELECT l_orderkey * 1000000000039 AS k, sum(l_quantity), min(l_tax), max(l_tax), avg(l_discount), count(*) FROM lineitem GROUP BY k
SELECT l_shipmode, l_comment, count(*), min(l_comment), sum(l_quantity) FROM lineitem GROUP BY l_shipmode, l_comment
SELECT l_shipmode, string_agg(l_shipinstruct, ',' ORDER BY l_orderkey, l_linenumber), median(l_quantity) FROM lineitem WHERE l_orderkey < 2000 GROUP BY l_shipmode
SELECT l_returnflag, l_linestatus, count(DISTINCT l_suppkey), sum(DISTINCT l_quantity) FROM lineitem GROUP BY l_returnflag, l_linestatus
SELECT l_returnflag, l_shipmode, sum(l_quantity), grouping(l_shipmode) FROM lineitem GROUP BY ROLLUP (l_returnflag, l_shipmode)
SELECT sum(l_quantity), min(l_shipdate), max(l_comment), corr(l_tax, l_discount), avg(l_extendedprice) FROM lineitem WHERE l_tax > 0.02
SELECT DISTINCT l_partkey FROM lineitem
SELECT DISTINCT l_orderkey * 1000000000039, l_linestatus FROM lineitem
SELECT DISTINCT l_comment FROM lineitem
SELECT l_orderkey, l_comment, l_shipdate FROM lineitem WHERE l_quantity < 10 AND l_comment LIKE '%regular%'
SELECT upper(l_comment), substr(l_shipmode, 1, 2) || '-' || CAST(l_orderkey AS VARCHAR), CAST(l_shipdate AS VARCHAR) FROM lineitem WHERE l_tax < 0.02
SELECT regexp_replace(l_comment, '([a-z]+) ([a-z]+)', '\2 \1'), regexp_like(l_comment, 'a.*(z|q)') FROM lineitem WHERE l_orderkey < 4000
SELECT l_orderkey, l_partkey, l_extendedprice FROM lineitem ORDER BY l_extendedprice DESC, l_orderkey
SELECT l_orderkey * 1000000000039 * l_linenumber AS k, l_tax FROM lineitem ORDER BY k
SELECT l_comment, l_orderkey FROM lineitem ORDER BY l_comment DESC NULLS LAST, l_orderkey
SELECT l_orderkey, l_extendedprice FROM lineitem ORDER BY l_extendedprice DESC LIMIT 100
SELECT l_orderkey, l_comment FROM lineitem ORDER BY l_shipdate, l_comment LIMIT 50 OFFSET 20
SELECT o_orderkey, o_totalprice, l_tax FROM orders JOIN lineitem ON o_orderkey = l_orderkey
SELECT o_totalprice, l_tax FROM orders JOIN lineitem ON o_orderkey * 1000000000039 = l_orderkey * 1000000000039
SELECT a.l_tax, b.l_tax FROM lineitem a JOIN lineitem b ON a.l_orderkey = b.l_orderkey AND a.l_tax < b.l_tax
SELECT a.l_tax, b.l_tax FROM lineitem a JOIN lineitem b ON a.l_orderkey * 1000000000039 = b.l_orderkey * 1000000000039
SELECT sum(l_tax) FROM orders JOIN lineitem ON o_orderkey = l_orderkey WHERE o_orderstatus = 'F'
SELECT c_name, o_totalprice FROM customer LEFT JOIN orders ON c_custkey = o_custkey AND o_totalprice > 100000
SELECT c_name, o_totalprice FROM customer FULL JOIN orders ON c_custkey = o_custkey + 700
SELECT c_name FROM customer WHERE c_custkey NOT IN (SELECT o_custkey FROM orders) OR c_acctbal < 0
SELECT o_orderkey FROM orders WHERE EXISTS (SELECT 1 FROM lineitem WHERE l_orderkey = o_orderkey AND l_tax > 0.07)
SELECT s_name, n_name FROM supplier, nation WHERE s_nationkey < n_nationkey
SELECT o_custkey, row_number() OVER w, rank() OVER w, sum(o_totalprice) OVER w, lag(o_totalprice) OVER w FROM orders WINDOW w AS (PARTITION BY o_custkey ORDER BY o_orderdate)
SELECT avg(o_totalprice) OVER (PARTITION BY o_custkey ORDER BY o_orderdate ROWS BETWEEN 3 PRECEDING AND 2 FOLLOWING), ntile(7) OVER (ORDER BY o_orderkey) FROM orders
SELECT min(o_totalprice) OVER (ORDER BY o_orderkey ROWS BETWEEN 40 PRECEDING AND CURRENT ROW) FROM orders
SELECT sum(o_totalprice) OVER (ORDER BY o_orderdate RANGE BETWEEN INTERVAL '30' DAY PRECEDING AND CURRENT ROW) FROM orders
SELECT o_custkey, array_agg(o_orderkey ORDER BY o_orderkey) AS l FROM orders GROUP BY o_custkey
SELECT unnest(range(0, l_linenumber)), l_orderkey FROM lineitem WHERE l_orderkey < 3000
SELECT l_orderkey FROM lineitem UNION ALL SELECT o_orderkey FROM orders
SELECT l_orderkey FROM lineitem INTERSECT SELECT o_orderkey FROM orders WHERE o_totalprice > 50000
SELECT l_partkey FROM lineitem EXCEPT SELECT ps_partkey FROM partsupp WHERE ps_availqty > 9900
SELECT date_trunc('month', l_shipdate) AS m, extract(year FROM l_shipdate) AS y, l_shipdate + INTERVAL '1' MONTH AS n, count(*) FROM lineitem GROUP BY m, y, n
SELECT CAST(l_quantity AS VARCHAR), CAST(CAST(l_tax AS VARCHAR) AS DOUBLE), round(l_extendedprice * (1 - l_discount), 1) FROM lineitem WHERE l_linenumber = 2
