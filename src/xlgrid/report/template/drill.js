// The details behind entries, and sorted and filtered tables. Without this script, the page is the same without them.
(async () => {
  const make = (tag, attributes = {}, ...children) => {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes))
      if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
      else if (value !== undefined && value !== null) element.setAttribute(name, value);
    element.append(...children.filter((child) => child !== null && child !== undefined && child !== false));
    return element;
  };
  const table = (caption, head, rows, ...keys) => make('div', {class: 'wide', tabindex: 0, role: 'region', 'aria-label': caption},
    make('table', {class: 'exhibit ' + keys.join(' ')}, make('caption', {}, caption),
      make('thead', {}, make('tr', {}, ...head.map((text) => make('th', {scope: 'col'}, text)))),
      make('tbody', {}, ...rows)));
  const row = (...cells) => make('tr', {}, ...cells.map((cell, at) =>
    cell instanceof HTMLTableCellElement ? cell : make(at ? 'td' : 'th', at ? {} : {scope: 'row'}, cell ?? '–')));
  const isNarrow = matchMedia('(max-width: 60rem)').matches;
  if (isNarrow) document.querySelector('nav details')?.removeAttribute('open');

  // Sorted and filtered tables. Then each row has all its keys, and no key spans several rows.
  for (const sortable of document.querySelectorAll('figure[data-exhibit] table.exhibit:not(.comparison table)')) {
    const body = sortable.tBodies[0], spans = [];
    const rows = [...body.rows].map((tr, number) => {
      const own = [...tr.querySelectorAll('th')], keys = [];
      for (const th of own) {
        while (spans[keys.length]?.end > number) keys.push(spans[keys.length].text);
        spans[keys.length] = {end: number + th.rowSpan, text: th.textContent};
        keys.push(th.textContent);
      }
      while (spans[keys.length]?.end > number && keys.length < spans.length) keys.push(spans[keys.length].text);
      tr.keys = keys;
      return {tr, own, keys, values: [...keys, ...[...tr.querySelectorAll('td')].map((td) => td.textContent)]};
    });
    const heads = [...sortable.tHead.rows].flatMap((tr, line, all) =>
      [...tr.cells].filter((th) => line === all.length - 1 || th.rowSpan > 1));
    let sorted = -1, ascending = false, wanted = '';
    const show = () => {
      const isPlain = sorted < 0 && !wanted, order = [...rows];
      const number = ({values}) => parseFloat(values[sorted].replace('\u2212', '-'));
      if (sorted >= 0) order.sort((a, b) => {
        const [x, y] = [number(a), number(b)];
        if (sorted >= a.keys.length) return (isNaN(x) - isNaN(y)) || (ascending ? x - y : y - x) || 0;
        return (ascending ? 1 : -1) * a.values[sorted].localeCompare(b.values[sorted], undefined, {numeric: true});
      });
      for (const {tr, own, keys, values} of order) {
        for (const th of tr.querySelectorAll('th')) th.remove();
        tr.prepend(...(isPlain ? own : keys.map((key) => make('th', {scope: 'row'}, key))));
        tr.hidden = !values.join(' ').toLowerCase().includes(wanted);
        body.append(tr);
      }
      heads.forEach((th, at) => th.setAttribute('aria-sort', at === sorted ? (ascending ? 'ascending' : 'descending') : 'none'));
    };
    // The first click shows the highest scores first, the second the lowest, and the third the order of the study.
    heads.forEach((th, at) => th.replaceChildren(make('button', {class: 'sort', title: 'Sort', onclick: () => {
      const isKey = at < rows[0].keys.length;
      if (at !== sorted) [sorted, ascending] = [at, isKey];
      else if (ascending === isKey) ascending = !isKey;
      else sorted = -1;
      show();
    }}, ...th.childNodes)));
    if (rows.length > 8) {
      const title = sortable.closest('figure').dataset.title;
      const filter = make('input', {type: 'search', placeholder: 'Filter rows', 'aria-label': `Filter the rows of ${title}`,
        oninput: () => { wanted = filter.value.trim().toLowerCase(); show(); }});
      sortable.parentElement.before(make('p', {class: 'filter'}, filter));
    }
  }

  const packed = document.getElementById('drill');
  if (!packed || !window.DecompressionStream) return;
  const bytes = Uint8Array.from(atob(JSON.parse(packed.textContent)), (character) => character.charCodeAt(0));
  const data = await new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream('deflate'))).json();
  const AXES = ['task', 'encoder', 'method', 'source', 'target', 'seed'];
  const dialog = make('dialog', {'aria-labelledby': 'drill-title', onclick: (event) => event.target === dialog && dialog.close()});
  document.body.append(dialog);
  const section = (title, isOpen, ...children) => make('details', isOpen ? {open: ''} : {}, make('summary', {}, title), ...children);
  const list = (pairs) => make('dl', {class: 'facts'}, ...pairs.filter(([, value]) => value !== null && value !== undefined)
    .map(([name, value]) => make('div', {}, make('dt', {}, name), make('dd', {}, `${typeof value === 'number' ? +value.toPrecision(6) : value}`))));
  const code = (text) => {
    const copy = make('button', {class: 'copy', onclick: async () => {
      await navigator.clipboard.writeText(text);
      copy.textContent = 'Copied';
    }}, 'Copy');
    return make('div', {class: 'command'}, make('code', {}, text), navigator.clipboard ? copy : null);
  };

  const curve = (points) => {
    const [steps, scores] = [points.map(([step]) => step), points.map(([, score]) => score)];
    const [low, high, last] = [Math.min(...scores), Math.max(...scores), Math.max(...steps)];
    const x = (step) => 44 + (step / last) * 250, y = (score) => 84 - ((score - low) / (high - low || 1)) * 70;
    const text = `Dev score from ${scores[0].toFixed(1)} at step ${steps[0]} to ${scores.at(-1).toFixed(1)} at step ${last}`;
    const holder = make('div', {class: 'curve'});
    holder.innerHTML = `<svg viewBox="0 0 320 110" role="img" aria-label="${text}"><path d="M44 8V84H304"/>
      <polyline points="${points.map(([step, score]) => `${x(step)},${y(score)}`).join(' ')}"/>
      ${points.map(([step, score]) => `<circle cx="${x(step)}" cy="${y(score)}" r="3"><title>step ${step}: ${score.toFixed(2)}</title></circle>`).join('')}
      <text x="38" y="18" text-anchor="end">${high.toFixed(1)}</text><text x="38" y="86" text-anchor="end">${low.toFixed(1)}</text>
      <text x="294" y="102" text-anchor="end">step ${last}</text></svg>`;
    return holder;
  };

  const examples = (cell) => {
    if (cell.without) return make('p', {class: 'missing'}, cell.without);
    if (!cell.examples) return make('p', {class: 'missing'}, 'The page has examples of one seed of each cell. ',
      make('code', {}, 'xlgrid export --predictions'), ' writes those of all cells.');
    if (!cell.examples.length) return make('p', {}, 'It got every example right.');
    const [, , , source] = cell.axes;
    const head = ['#', 'Text', 'Gold', 'Predicted', cell.other, cell.home && `In ${cell.home}`];
    const shown = head.map((name, at) => at).filter((at) => head[at]);
    const rows = cell.examples.map(([number, text, translation, gold, predicted, other, home]) => {
      const all = [`${number}`, make('td', {class: 'text', dir: 'auto'}, text, translation && make('small', {lang: source, dir: 'auto'}, translation)),
        ...[gold, predicted, other, home].map((answer, at) =>
          make('td', {class: answer === gold ? 'right' : 'answer', dir: 'auto', 'data-head': head[at + 2]}, answer || '–'))];
      return row(...shown.map((at) => all[at]));
    });
    const [wrong, all] = [cell.wrong, cell.n].map((number) => number?.toLocaleString('en'));
    const count = wrong ? `${rows.length} of the ${wrong} that it got wrong, of ${all}` : `${rows.length} of ${all} that differ from the gold ones`;
    return table(count, shown.map((at) => head[at]), rows, 'examples');
  };
  const confusion = ({labels, counts}) => table('Gold labels in rows, predicted ones in columns', ['Gold', ...labels],
    counts.map((line, at) => {
      const sum = line.reduce((total, count) => total + count, 0);
      return row(labels[at], ...line.map((count, column) => make('td', {class: column === at ? 'right' : '',
        style: count && `--share: ${Math.round((45 * count) / sum)}%`}, `${count}`)));
    }), 'matrix');

  const describe = (cell) => {
    const run = data.runs[cell.run], [task, encoder, method, source, target, seed] = cell.axes;
    return [
      make('h3', {tabindex: -1}, `${task}, ${encoder}, ${method}: ${source} → ${target}, seed ${seed}`),
      section('Examples', true, examples(cell)),
      cell.labels && section('Scores of labels', false, table('Precision, recall and F1 of each label, in percent',
        ['Label', 'Precision', 'Recall', 'F1'], cell.labels.map(([name, ...scores]) => row(name, ...scores.map((score) => score.toFixed(1)))))),
      cell.matrix && section('Confusion of labels', false, confusion(cell.matrix)),
      run && section('Recipe and learning curve', false, run.curve.length > 1 ? curve(run.curve) : '',
        list(run.facts)),
      section('Files and commands', false,
        list([['cell', cell.path], ['seconds', cell.seconds], ['log', cell.log], ['run', run?.folder], ['log of the run', run?.log], ['digest', cell.digest ?? run?.digest]]),
        make('p', {}, 'To make this cell again:'), code(`${data.again} ${cell.path}`),
        cell.command && make('p', {}, 'What made it:'), cell.command && code(cell.command),
        run?.command && make('p', {}, 'What trained its run:'), run?.command && code(run.command)),
    ];
  };

  const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;
  const open = (name, at, title, text) => {
    const {entries, rows: names, columns} = data.exhibits[name], cells = entries[at].map((number) => data.cells[number]);
    const differing = AXES.map((axis, place) => place).filter((place) => new Set(cells.map((cell) => cell.axes[place])).size > 1 || place === 5);
    const metrics = [...new Set(cells.flatMap((cell) => Object.keys(cell.scores ?? {})))];
    const below = make('div', {class: 'cell', 'aria-live': 'polite'});
    const choose = (cell, button, isAsked) => {
      for (const other of dialog.querySelectorAll('[aria-pressed]')) other.setAttribute('aria-pressed', other === button);
      below.replaceChildren(...describe(cell).filter(Boolean));
      if (isAsked) below.querySelector('h3').focus();
    };
    const score = (value) => value === null || value === undefined ? '–' : value.toFixed(2);
    const rows = cells.map((cell) => row(
      make('th', {scope: 'row'}, make('button', {'aria-pressed': false, onclick: (event) => choose(cell, event.currentTarget, true)},
        differing.map((place) => (place === 5 ? `seed ${cell.axes[5]}` : cell.axes[place])).join(' · '))),
      ...metrics.flatMap((metric) => cell.scores?.[metric] ?? [null, null]).map(score), cell.scores ? `${cell.n}` : 'no result'));
    dialog.replaceChildren(
      make('header', {}, make('h2', {id: 'drill-title'}, title), make('button', {class: 'close', 'aria-label': 'Close', onclick: () => dialog.close()}, '×')),
      make('p', {class: 'files'}, `${name}: ${text}`),
      table(cells.length > 1 ? `${cells.length} cells` : 'One cell', ['Cell', ...metrics.flatMap((metric) => [metric, 'Chance']), 'Examples'], rows, 'cells'),
      below,
      section('Trace of this entry', false, make('p', {}, 'Versions, hashes of files and commands behind this entry:'),
        code(`xlgrid trace results/${data.study}/exhibits/${name}.csv --row ${quoted(names[Math.floor(at / columns.length)])} --column ${quoted(columns[at % columns.length])}`)));
    const first = Math.max(0, cells.findIndex((cell) => cell.examples));
    choose(cells[first], dialog.querySelectorAll('[aria-pressed]')[first], false);
    dialog.showModal();
    dialog.scrollTop = 0;
  };

  for (const figure of document.querySelectorAll('figure[data-exhibit]')) {
    const name = figure.dataset.exhibit, entries = data.exhibits[name]?.entries;
    const cells = [...figure.querySelectorAll('table.exhibit:not(.comparison table) tbody td')];
    if (!entries || cells.length !== entries.length) continue;
    const heads = [...figure.querySelector('table.exhibit thead').lastElementChild.querySelectorAll('th')].map((th) => th.textContent);
    const outer = [...figure.querySelectorAll('table.exhibit thead tr:first-child th[colspan]')].flatMap((th) => Array(th.colSpan).fill(th.textContent));
    const quads = [...figure.querySelectorAll('svg g.entries path')];
    // A row of a comparison with published numbers has our numbers in a line of its own.
    const ours = [...figure.querySelectorAll('.comparison tbody tr')].filter((tr) => [...tr.querySelectorAll('th')].at(-1)?.textContent === 'ours')
      .flatMap((tr) => [...tr.querySelectorAll('td')]);
    let at = 0;
    for (const tr of figure.querySelector('table.exhibit tbody').rows) {
      const width = tr.querySelectorAll('td').length;
      for (let column = 0; column < width; column++, at++) {
        if (!entries[at]?.length) continue;
        const place = at, td = cells[at], text = td.textContent;
        const title = [...tr.keys, outer[column], heads.slice(-width)[column]].filter(Boolean).join(' · ');
        const show = () => open(name, place, title, td.title || text);
        for (const each of ours.length === entries.length ? [td, ours[at]] : [td]) {
          each.replaceChildren(make('button', {class: 'entry', onclick: show, 'aria-haspopup': 'dialog'}, each.textContent));
        }
        const quad = quads.length === entries.length && quads[at];
        if (!quad) continue;
        quad.setAttribute('role', 'button');
        quad.setAttribute('aria-label', `${title}: ${text}`);
        quad.setAttribute('tabindex', quads.some((each) => each.tabIndex === 0) ? -1 : 0);
        quad.innerHTML = '<title></title>';
        quad.firstChild.textContent = `${title}: ${text}`;
        quad.addEventListener('click', show);
        // One of the entries takes part in the order of the Tab key, and the arrows move to the others.
        quad.addEventListener('keydown', (event) => {
          const step = {ArrowRight: 1, ArrowLeft: -1, ArrowDown: width, ArrowUp: -width}[event.key];
          if (event.key === 'Enter' || event.key === ' ') show();
          else if (!step) return;
          else for (let next = place + step; quads[next]; next += step) if (quads[next].hasAttribute('role')) {
            quad.tabIndex = -1;
            quads[next].tabIndex = 0;
            quads[next].focus();
            break;
          }
          event.preventDefault();
        });
      }
    }
    if (quads.length === entries.length) {
      const svg = quads[0].ownerSVGElement;
      svg.setAttribute('role', 'group');
      svg.classList.add('linked');
    }
  }
})();
