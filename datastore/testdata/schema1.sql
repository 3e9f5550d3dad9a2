CREATE TABLE goose_db_version (
		id INTEGER PRIMARY KEY AUTOINCREMENT,
		version_id INTEGER NOT NULL,
		is_applied INTEGER NOT NULL,
		tstamp TIMESTAMP DEFAULT (datetime('now'))
	);
CREATE TABLE identity (
    id    INTEGER PRIMARY KEY CHECK (id = 1),
    store TEXT NOT NULL,
    doc   BLOB NOT NULL
);
CREATE TABLE counters (
    name  TEXT PRIMARY KEY,
    value INTEGER NOT NULL
);
CREATE TABLE runs (
    id             TEXT PRIMARY KEY,
    cluster        TEXT NOT NULL,
    kind           TEXT NOT NULL,
    status         TEXT NOT NULL,
    pr_repo        TEXT NOT NULL,
    pr_number      INTEGER NOT NULL,
    state_location TEXT NOT NULL,
    priority       INTEGER NOT NULL, -- 0: writes; 1: reads
    attempt        INTEGER NOT NULL,
    fence          INTEGER NOT NULL,
    claim_at       INTEGER, -- from when on it may be claimed; NULL: not at all
    heartbeat_at   INTEGER NOT NULL,
    step           TEXT NOT NULL,
    posted_at      INTEGER NOT NULL,
    created_at     INTEGER NOT NULL,
    version        INTEGER NOT NULL,
    doc            BLOB NOT NULL
);
CREATE TABLE attempts (
    run          TEXT NOT NULL REFERENCES runs (id),
    attempt      INTEGER NOT NULL,
    fence        INTEGER NOT NULL,
    agent        TEXT NOT NULL,
    status       TEXT NOT NULL,
    reason       TEXT NOT NULL,
    claimed_at   INTEGER NOT NULL,
    ended_at     INTEGER NOT NULL,
    log_size     INTEGER NOT NULL, -- bytes that are kept
    log_received INTEGER NOT NULL, -- bytes that were sent; more than log_size beyond the cap
    log_capped   INTEGER NOT NULL,
    PRIMARY KEY (run, attempt)
);
CREATE TABLE log_chunks (
    run      TEXT NOT NULL,
    attempt  INTEGER NOT NULL,
    end_at   INTEGER NOT NULL,
    data     BLOB NOT NULL,
    PRIMARY KEY (run, attempt, end_at),
    FOREIGN KEY (run, attempt) REFERENCES attempts (run, attempt)
) WITHOUT ROWID;
CREATE TABLE artefacts (
    run        TEXT NOT NULL REFERENCES runs (id),
    attempt    INTEGER NOT NULL,
    name       TEXT NOT NULL,
    size       INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    blob       TEXT NOT NULL,
    inline     BLOB,
    PRIMARY KEY (run, name, attempt)
);
CREATE TABLE bundles (
    digest     TEXT PRIMARY KEY,
    size       INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    blob       TEXT NOT NULL,
    inline     BLOB
);
CREATE TABLE clusters (
    name        TEXT PRIMARY KEY,
    owner       TEXT NOT NULL,
    project     TEXT NOT NULL,
    environment TEXT NOT NULL,
    phase       TEXT NOT NULL,
    waiting     TEXT NOT NULL,
    labels      TEXT NOT NULL, -- a JSON object
    applied_run TEXT NOT NULL,
    version     INTEGER NOT NULL,
    doc         BLOB NOT NULL
);
CREATE TABLE sources (
    repo          TEXT PRIMARY KEY,
    head          TEXT NOT NULL,
    comments_seen INTEGER NOT NULL,
    polled_at     INTEGER NOT NULL,
    last_error    TEXT NOT NULL
);
CREATE TABLE tags (
    repo     TEXT NOT NULL,
    tag      TEXT NOT NULL,
    revision TEXT NOT NULL,
    PRIMARY KEY (repo, tag)
);
CREATE TABLE leases (
    name       TEXT PRIMARY KEY,
    owner      TEXT NOT NULL,
    expires_at INTEGER NOT NULL
);
CREATE TABLE audit (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    recorded_at INTEGER NOT NULL,
    actor       TEXT NOT NULL,
    action      TEXT NOT NULL,
    object      TEXT NOT NULL,
    detail      TEXT NOT NULL
);
CREATE TABLE pull_requests (
    repo    TEXT NOT NULL,
    number  INTEGER NOT NULL,
    state   TEXT NOT NULL,
    version INTEGER NOT NULL,
    doc     BLOB NOT NULL,
    PRIMARY KEY (repo, number)
);
CREATE TABLE pull_request_clusters (
    repo    TEXT NOT NULL,
    number  INTEGER NOT NULL,
    cluster TEXT NOT NULL,
    PRIMARY KEY (repo, number, cluster)
);
CREATE TABLE posts (
    post_key       TEXT PRIMARY KEY,
    kind           TEXT NOT NULL,
    pr_repo        TEXT NOT NULL,
    pr_number      INTEGER NOT NULL,
    runs           TEXT NOT NULL, -- a JSON array: the runs that the wanted content shows
    head           TEXT NOT NULL,
    posted_runs    TEXT NOT NULL, -- those that the posted content shows
    posted_head    TEXT NOT NULL,
    external_id    TEXT NOT NULL,
    wanted         INTEGER NOT NULL,
    wanted_at      INTEGER NOT NULL,
    posted         INTEGER NOT NULL,
    posted_at      INTEGER NOT NULL,
    abandoned      INTEGER NOT NULL, -- the wanted that was given up
    not_before     INTEGER NOT NULL,
    failures       INTEGER NOT NULL,
    last_error     TEXT NOT NULL,
    claimed_by     TEXT NOT NULL,
    claimed_until  INTEGER NOT NULL,
    claimed_wanted INTEGER NOT NULL,
    doc            BLOB NOT NULL
);
CREATE TABLE commands (
    id         TEXT PRIMARY KEY,
    repo       TEXT NOT NULL,
    comment_id TEXT NOT NULL,
    line       TEXT NOT NULL, -- digest of the command's text
    status     TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    doc        BLOB NOT NULL
);
CREATE TABLE states (
    location     TEXT PRIMARY KEY,
    last_version INTEGER NOT NULL, -- the last number that was given, quarantined ones included
    current      INTEGER NOT NULL, -- the newest version that is served; 0: none
    serial       INTEGER NOT NULL  -- of current
);
CREATE TABLE state_versions (
    location    TEXT NOT NULL,
    version     INTEGER NOT NULL,
    serial      INTEGER NOT NULL,
    lineage     TEXT NOT NULL,
    size        INTEGER NOT NULL,
    run         TEXT NOT NULL,
    attempt     INTEGER NOT NULL,
    created_at  INTEGER NOT NULL,
    quarantined INTEGER NOT NULL,
    digest      TEXT NOT NULL, -- keyed
    blob        TEXT NOT NULL,
    inline      BLOB,
    PRIMARY KEY (location, version)
);
CREATE TABLE state_locks (
    location   TEXT PRIMARY KEY,
    lock_id    TEXT NOT NULL,
    operation  TEXT NOT NULL,
    who        TEXT NOT NULL,
    engine     TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    info       BLOB,
    run        TEXT NOT NULL,
    attempt    INTEGER NOT NULL,
    fence      INTEGER NOT NULL
);
CREATE TABLE local_pull_requests (
    repo   TEXT NOT NULL,
    number INTEGER NOT NULL,
    doc    BLOB NOT NULL,
    PRIMARY KEY (repo, number)
);
CREATE TABLE local_comments (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    repo       TEXT NOT NULL,
    number     INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    doc        BLOB NOT NULL
);
CREATE TABLE local_statuses (
    repo     TEXT NOT NULL,
    revision TEXT NOT NULL,
    context  TEXT NOT NULL,
    doc      BLOB NOT NULL,
    PRIMARY KEY (repo, revision, context)
);
INSERT INTO goose_db_version VALUES (1, 0, 1, '2026-11-21 15:20:39');
INSERT INTO goose_db_version VALUES (2, 1, 1, '2026-11-21 15:20:39');
INSERT INTO identity VALUES (1, '502ae88acd30076c', X'01bf62ea30d2723080e8f30da65d677e1126b3f2c7c6c3f09f24a618d9523a53ddce80ee8c66f2a9a3');
INSERT INTO counters VALUES ('fence', 2);
INSERT INTO runs VALUES ('run-0001', 'prod-eu', 'plan', 'planned', '', 0, 'clusters/prod-eu', 1, 1, 1, NULL, 1772366400123456789, '', 0, 1772366401123456789, 3, X'01bf62ea30d272308007be93bff34afb231348a2079eddc1c37ce446560d3beffe4c18936e1c578d77f4d84e4b7ff19afaedf395bf8536155db2de8e354a36fa2a29b56e31d9560b6811ba5edb496d1d24afa2eac36d4685f78c6eaa2d6daf6affb7804797a55bec4ae4de99b0ea1eceb8bc59724766214440b61b41f4549c89fd9927fd58de9fb9600c58a8cabd8eb364d05f3357ee2c79418b66a4299a074d0d90efc9c9a2269dd2b01ada6680403ba56729f1b167aa54c9e902b6ff283897d73909c41554994f11f34bc0f887144e3322d76ad6e2df14adb07cbdf8282751c1a91cc4a12b25122bfcb3b442c4379056b5b63febe82c89b9350a52632d2077387c63530f5bf22b69277e88993d95eef9fbb9d9f45fd5baec5878b104d29eff9335cbd63e73b7621a044ee85b6375e4c5c9df47e036132bf934ad8052006e62292ff8a335d1b7f06acddf055576353749faa8d32fe308de7017f2cd7f3268e7b7e5a8cb88b18b69c96cf80952dab6e39f01da179d1109a997ef48a6cf795f9ab2e6d769fe062322fe778e69bf874f2cee62d981eb5b9682bb1d9149c2eaaa2db56fc21dafdfbbb4b934d9cf06d9261e9339f109c7a5e82ad15cb9323c761d7422cae56501acfdcd346f06985a332ad1730ccde760966a852c0d61588b3949a8102f99ab0d47c13ba273e2768298b6b83d3acf76ffd36dece691379e502d4fcb11a84166b97ec8a7e56170be9017c09adef9d7f098619537dd944977da1c8322ea9bcb48fc4ff47e625210f803cde8332cf52364e308602737a459bc0ba08677544bc73831706c06e422d5610f2a950fcacdcae432e389dd66cc960cab6c9a25d17a566c4d5708a864555f874d813a3e6182d273eaa7fcd801f646d9948f2b8830d44a8c5028b558935a3db5d98d0c12f4f633c812697655cd77209a2b351d32042d5b8dee48790de9');
INSERT INTO runs VALUES ('run-0002', 'prod-eu', 'apply', 'applied', '', 0, 'clusters/prod-eu', 0, 1, 2, NULL, 1772366400123456789, '', 0, 1772366402123456789, 3, X'01bf62ea30d2723080e116c3f74f9ce1642cb434e446e2ed231462e9ccdc00fed6c7927f9be3a5cdc20613a6bd0e19cfc81214fe9881d3423069b30eac83b0314f61f8988a7ad559ff4d647b0659cd7529ede6fe07c72503afb532a0b5a719d922a6015cbd85dd716204bd54c8cfcbce9dcc80c48758a1bdbbfd21a671011a7f9046173b4d0a3795d5457cccf1835bdea43f28c431a323ae57e20f6b6c63fcdfae34bce71cb6c19a36442b71dde8f81af57a0c811b14e4c7021d2abfe05c141a09e8bf40381c039d4367c5d5aeea45fe14df442db975e41d58c3c389d8f147295adb9697d6552b300116f4c6759590a73256f5adfd86ea4cb59964c68d4e981a60b3133e5396ace9133417840c89fd34a45172eca99109ebee78507e2cf404c031b33c5b94f4c2c3c05efa9762d7fdf2eddcce7aa069a6042841ea31fb576200c577288bb66259504ba96ce3e0e0935b7c481fa2822487ade62b387df211fc3f968aea12f85a6d4f49ff0bb8cd4ed8edc90861a4269c5a59acab99b0725460f3a344e67e6188bf22efc6a81cd1405c84b00d828afefda56d87cc1c457120a612d5e0a4a5c11c777a44413e8b3a11999270b517140bbecdaaf790c485686673839c5e413d5726058e8109085b114c38716e81ba088fe562043a414cbd90b9b66064f76aae76545d4d0ab78cc8516d9719b9d1bca1311cd8688bb87c3833a3d0286d347d4d349202afd286f5c85e5406b8d27751dcc314a54f24f3cbdfac6fb3e5b7cf2e9fec974d840df142f446e58b88cb517cb04160f2ea3dff98b252d0e0f97ec784db4832ae4dbd1f4adf975511e9918c4dd61192d6a210a8726d75fba05bda73a49649ac3ad98e2be1156c8f400041c65ea86d12e65a5775483c6ac92f5ac1fedf33597f1386e6c8aa67dfc79c314ee27650f74de6b8f1946632ebb21f326b1a60f61261f4a859312770f31b76cf0eaced02352ac84580a1606bdfbd61ec5ff4a6ef047403085eef80ddb5972a6508aa52cd5e6df7ae538a880120c90d7a70aab5548e455ad7ea12bb1b9ae081edee1d58');
INSERT INTO runs VALUES ('run-0003', 'dev-us', 'plan', 'queued', '', 0, 'clusters/dev-us', 1, 0, 0, 0, 0, '', 0, 1772366403123456789, 1, X'01bf62ea30d2723080594b3a4f3ffdb042db30d6d26baddb92241458b8544e7905641bd5c5edc5775e0be66f076042eb4f983b6f19437f1aa1903cf81403002085ca45760022ed657853ccf1b97e85a7219edf945fe9e51398d1149a2d85c5433c5c41a2a66c7e32e9978be31c2ce4c93f87cc40bd57f6fe1361eeef679b88e9766d29263d605c5aae062eebd273fbda2c10e5fead3cfb4ba1bb2b9d64a0c24746c41769063e19abfb29bed13cc4e7a000f0cf580912a8290b0182858cb89ac8711055aae5b4884648065127cf79a2c5040634613ad22577a5084b7d281681e48d9e79f47ce67d1bc1e061340e6c1d03fa738f0b4be1fbdeaa9344bc85b6e5ef5881023f18107859d02208c73df966115dcb7131d57a337bf879c538a7fbd8d47e4f5850d9ba1a84f9eb3e4678083770e3aabcab5345dacc9574b27e1b135b5f16f4b84c30cd6d230d3d206460932bc979070764677dcba1ecdc3b00af6e1aa54ae07ed1837ba01efb31155d3de98b6a443a80664524e728c8940c7895d89d6182fa41a48d1161110aed3c07aeda65e11833bd87ee26d664b9e7f9d51e6b6dc3828036812b3c39305b5f282f5e8215562c502f42c862f50ea1a951e575006a999c46370ba838cc450809483c3997a24ce9ba8dbb621c9b0c1bf4e8ff7c211fd81707234d2eb7640d0ed89e54fdd0935f7bd610');
INSERT INTO runs VALUES ('run-0004', 'prod-eu', 'drift', 'queued', '', 0, 'clusters/prod-eu', 1, 0, 0, 0, 0, '', 0, 1772366404123456789, 1, X'01bf62ea30d27230808732a2e858a1965ff0c5f6862deeecdb901cdf49cbae783ea601f54a2e8cf322861c421aa7ffe566e211f12b269a70a2496a6f823ae7babc01fe9922a5d577b2bb7f4cda1a26a8451bc2dde4d62d89b2c9ab83a162d0c97935d8b633ea0665256be8682fd0fd61b50728baec8798c4a8d39ba6c9e085a7c34a3add3be637fd6da817034f03e123e04483d33fc823ff6758fef596f096030a5cfd1e9616c6d4f38e6396a6ff69df94e0a2e8a2d2043493a21027a9f5aeac4f482e94398624810b7295be821a85ba24ff758ade133039dc53433e5a7923909bd32ec3ed5b05fdd5e4f5f71094195de06f1cb4b0d259e390c4f2bce1c43c403a754ba7818a6c0dcf08f4f9533225fdd8b6988e041c0ff098d117b6c1d8fb0392d6aa55e5d043b0a5580dfdc323972d6abd3eea2f0fb5934a57160542c4e6d4c9828a7650eec90aa520aba3f4534f43efb0d8bfad09e27da59861a57486bbf9cecaa93107534b6ef545aedb6f100029fc3854cf7409cc8205027eb28c1fcdd9a3ef35dfc199424ba98d86138655437bcdaf78f3666164b9789acfa425ca10bcbe5cf6544daac8013573d7b0c59e674affd8a62bfa2192133df17ddcbc4d4e5af5e7c33dfbf442f6b4e72699a003605b5361ccf7afafb2dc1bac3b4fe4edf0e015e78ced4aaf762c882af64d0a7b497f713e245fc043');
INSERT INTO attempts VALUES ('run-0001', 1, 1, 'agent', 'planned', '', 1772366400123456789, 1772366400123456789, 8, 8, 0);
INSERT INTO attempts VALUES ('run-0002', 1, 2, 'agent', 'applied', '', 1772366400123456789, 1772366400123456789, 0, 0, 0);
INSERT INTO log_chunks VALUES ('run-0001', 1, 8, X'706c616e6e65640a');
INSERT INTO artefacts VALUES ('run-0001', 1, 'summary', 48, 1772366400123456789, '502ae88acd30076c/artefact/1f/db8a8ec84f447e11ba76ecc49b1a7b', X'01bf62ea30d27230802a3e472716c4fe2769a168b8a637b0ae62c09b8d64bed66db4be0aac421b545767b9340aa5aadde8652ef84abd5f3d9db42765f929a24849730659d3fac31ea6cf9ecda832f2264e3a597f156109b6a9');
INSERT INTO bundles VALUES ('sha256:1e6ed65d77d6364eeaed5a745ba5c4985ae2b700dd85d7cf7f027bdf294a33fc', 6, 1772366400123456789, '502ae88acd30076c/bundle/6b/aeebddcca5f6a4be9338adc29436ec', X'01bf62ea30d2723080047562450a75fa9988f733e4de0992553d2106cbdf30cc85c3a711b702040a831970c0433cb1');
INSERT INTO clusters VALUES ('prod-eu', 'fleet', 'payments', 'production', 'Active', '', '{"team":"blue"}', 'run-0002', 1, X'01bf62ea30d2723080818bf67361ccfd854a95d48daa123fe4906926027017abc8dddff3d28ac3e71ed8ac05f17bda0b277e709809cb221a5e193078459d1d8442f51964e9a80ecace06ec471dbbc5536ee69815aa9ddbf1a3f83c7513a272e8ecf72b6324112f4a80d0ca947f5a3e8002d08752d659a3f7c61bad009806508a5d4bd562a4eb336ee7e5466dee155a7078e96d8282064d44293a2711e7691ebaed73ae72adf18e21d90d57b96ff4694fe9b046f05072e18a4824b20b41318633b211cf3ef9ad82c16e1febe6a8e674268095094c579147ebbc014e2c38d20ea7788fb5d97daa8b7e6f8027d8f8c5b9c6a3d8000b6fb21f59e4cf3051e66467aae4e58d9d1b2f59dcad644e89063a4259b5bfeed11f0d174d47c93f99889c18ae50c2353ab01027eab03de8e7da2bf063b2da376df4efa6c3e8be8b2f28b55863640ad1e8c841636cbde915dd91923bf430d5275945a00c40667af5a075fc499995aba5048aaa3159687f89057e8daee3b80280153595ae1c31a33f639c6782d4a94059cf013ac12dfae7884176ccfc327b542eb86a04f7859ad7251b9bbfe2f732985cefd3840e1892fece0e44790940bd5f621e9ed3a97f4cced57940d1f12b252415ba276116f53f738f571b222cdd79edbf71d18a6a765da3b1d04005206f08c80324f5829244f5693767369eb8bf2ede40e5c20d79c5426b4fdcf0f1726c10cd90834f9d2d7d084048d583ba8197f9bad76f5ea7d3f4d93c1f73e1667d7ffcbc3f8213bdf2cc2d9e5c2bec09494f992a5f25036537cd57a79ba382981785371a67466771518559c36e6e62546e853e66cb1f6a9e0f7b9d6ca2a1fc49a72d8b847e27e7cf7810bf9b2c89193688f1f82946bcc8f46c8b65adade6708b94c554a9138c7e075e0863efef3d40b858a54eac5ad5c5b1d3596521cdb571b0b721398fd78135d9d1e529f27741cb9ae0a0123637ac83ef25795989b8fda6cf5857d10aa50fc5c33ded001196893a1ee0791df82e714b7914d8fabf3b6a46f8a2981fb9580c847c24ba95b045d26025f349d7e31067c433921dc78c71b035462c738a4aea0894627c8ddf802390accbb9dd5143232ad83659dfc0d3b4c7a3cc179975ed847f375069f6352c5310dd09165269a2b61e2d4d29e2c0d0072985685292b6f894d2a7c40e2506ebd7897100695d07c0144cb209b485b7f6d401fe66c0fcacf277482a2cd96984567593e8fb9df4a553f058e2be19605fb0513f8b3bd3');
INSERT INTO clusters VALUES ('dev-us', 'fleet', 'payments', 'development', 'Pending', 'Unreviewed', '{"team":"red"}', '', 1, X'01bf62ea30d27230801f5f1fc8faf4edf823316614c2de2f285fdb652210616bce35f107cacb0eb8de951a72bb6c475dc73b71032a2d800a334c4beab63a4637bfb925bb36945265309ec5a697523cac2f6195bc66d251cd4f5f67383154387d8f68b8b2ad5bab6e64499b46323adc5faa716d14aebaa51a24c4496e2e4381c100a259e8962575a5f373dded46568bbb606429006d9d22211578ccbc2450dc196283f956cd338f531cf155f6803c432a92a35bfdc197ada622cd724839c4f75360b4809373d151dba0d9ded6164092b43899aba9770cc70464e6a887f1b72627dc17e8cd54d0924b0f91c1fb31c023838224f6ef7df716cbb314b561505a88b48329238edb71b67277fdf488d0a586bd2c1e177fa80461eac444d836dfc2c392f70493a80d9c18bcb95737860d02bd5532f4504ba9cc80fca0828c4479f8e325e5cd4425e07732834c4e2057331a4696b7402f0e3e6d354c4e917ba319a16c4ca6b6af7a58ff3782680a28403dc68483bb718f27e2ad759113c54c6404368c898bce63da0ec4f22688677ae0631c9fee7e79c46e403b61bc232079d49026393898dba573538ade62468cb016b40b3e0a63f5cbdf6e805a8e08277bc712');
INSERT INTO posts VALUES ('comment:fleet#7', 'comment', 'fleet', 7, '["run-0001"]', 'abc', '[]', '', '', 1, 1772366400123456789, 0, 0, 0, 0, 0, '', '', 0, 0, X'01bf62ea30d2723080f9e85b1add7f0bdbc757e19be65d4dcc341c7dcc376221c23132f614655230daf879dd7bc2a3249025757e0071bbfb2755f3eacaf52efaa91e9e7d558057428dc88b52053f52ec7b9998c708cfb742a10bf2a92623a769506e430fed1862e56094d8f6ccd0a21ccf8c1835b227aca485d1d53d0e1fecf31ae80b791086fe872ec5d1d77da2b7329fce32046633e89178f5a4e0d1032c09d834c9b390fc6a79fd283600676c2dd4341019');
INSERT INTO states VALUES ('clusters/prod-eu', 1, 1, 7);
INSERT INTO state_versions VALUES ('clusters/prod-eu', 1, 7, 'lin', 79, 'run-0002', 1, 1772366400123456789, 0, '50745051acd607e570726e4a24189c7a55daafb0f8e40d9278ad477e63b13972', '502ae88acd30076c/state/16/5091e72f71fa7ad398ed8a98a27f88', X'01bf62ea30d2723080bc6d28cf74f46f793932b7f2b013b9029a94ceab75809be2eee153fa26f4c770f3d5f8e323e05c23c0b36cff74e476664fa3b4be1afc2e2be9f431ccb5958a9dd6de94145dca280c99477c8020f3f60e93677dfd8b63b89c776415d54c8d75fe4dcedcb6a34f103829c78b3fa8e288');
CREATE UNIQUE INDEX runs_running ON runs (state_location) WHERE status = 'running';
CREATE INDEX runs_claimable ON runs (priority, created_at, id) WHERE claim_at IS NOT NULL;
CREATE INDEX runs_by_age ON runs (created_at, id);
CREATE INDEX runs_by_status ON runs (status, created_at, id);
CREATE INDEX runs_by_cluster ON runs (cluster, created_at, id);
CREATE INDEX runs_by_pull_request ON runs (pr_repo, pr_number, created_at, id);
CREATE INDEX clusters_by_owner ON clusters (owner, name);
CREATE INDEX clusters_waiting ON clusters (waiting, name) WHERE waiting <> '';
CREATE INDEX audit_by_object ON audit (object, id);
CREATE INDEX pull_requests_by_state ON pull_requests (state, number);
CREATE INDEX pull_request_clusters_by_cluster ON pull_request_clusters (cluster, number);
CREATE INDEX posts_due ON posts (wanted_at, post_key) WHERE wanted > posted AND wanted > abandoned;
CREATE INDEX posts_comments ON posts (pr_repo, pr_number) WHERE kind = 'comment';
CREATE UNIQUE INDEX commands_once ON commands (repo, comment_id, line) WHERE comment_id <> '';
CREATE INDEX commands_by_status ON commands (status, created_at, id);
CREATE INDEX local_comments_by_pull_request ON local_comments (repo, number, id);
CREATE INDEX local_comments_by_time ON local_comments (repo, updated_at);
